/**
 * Makes the built-in functions that are handed the platform's own objects what they are for good: with one that an
 * app's code has put in their place it would hold its agents' runtime, and by that the link to the host.
 */

/**
 * Built-ins that are handed the platform's objects. Those of strings, numbers, dates and errors see only values, and
 * stay open to libraries.
 */
const HELD = [
  "Array",
  "FinalizationRegistry",
  "Function",
  "Iterator",
  "Map",
  "Object",
  "Promise",
  "Proxy",
  "Reflect",
  "Set",
  "WeakMap",
  "WeakRef",
  "WeakSet",
] as const;

/** Code assigns them to objects of its own, which a fixed property of a prototype would forbid. */
const OVERRIDDEN = new Set<PropertyKey>([
  "constructor",
  "hasOwnProperty",
  "isPrototypeOf",
  "propertyIsEnumerable",
  "toLocaleString",
  "toString",
  "valueOf",
]);

export function freezeIntrinsics(): void {
  for (const name of HELD) {
    Object.defineProperty(globalThis, name, { writable: false, configurable: false });
  }
  for (const holder of holders()) {
    for (const key of Reflect.ownKeys(holder)) fix(holder, key);
  }
  // A property that every object seems to have would answer where the platform finds none.
  Object.preventExtensions(Object.prototype);
}

function holders(): Set<object> {
  const found = new Set<object>();
  for (const name of HELD) {
    const value = globalThis[name] as { prototype?: object };
    found.add(value);
    if (value.prototype) found.add(value.prototype);
  }
  const generator = (function* () {})();
  const asyncGenerator = (async function* () {})();
  for (const one of [
    [][Symbol.iterator](),
    new Map()[Symbol.iterator](),
    new Set()[Symbol.iterator](),
    ""[Symbol.iterator](),
    "".matchAll(/./g),
    [].values().map(() => 1),
    Iterator.from({ next: () => ({ done: true, value: undefined }) }),
    generator,
    asyncGenerator,
    async () => undefined,
    generator.constructor,
    asyncGenerator.constructor,
  ]) {
    for (let at: object = Object.getPrototypeOf(one); at; at = Object.getPrototypeOf(at)) {
      found.add(at);
    }
  }
  return found;
}

function fix(holder: object, key: PropertyKey): void {
  const property = Object.getOwnPropertyDescriptor(holder, key);
  if (!property?.configurable) return;
  const { value } = property;
  if (typeof value !== "function") {
    if (property.get) Object.defineProperty(holder, key, { configurable: false });
    return;
  }
  if (!OVERRIDDEN.has(key)) {
    Object.defineProperty(holder, key, { writable: false, configurable: false });
    return;
  }
  Object.defineProperty(holder, key, {
    configurable: false,
    get: () => value,
    set(this: object, own: unknown) {
      if (this === holder) throw new TypeError(`Cannot change ${String(key)} of a built-in object`);
      const { enumerable = true } = Object.getOwnPropertyDescriptor(this, key) ?? {};
      const changed = { value: own, writable: true, configurable: true, enumerable };
      Object.defineProperty(this, key, changed);
    },
  });
}
