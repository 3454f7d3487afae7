/**
 * Freezes the built-in functions that the platform calls with its own objects. If app code could replace such a
 * function, it would receive its agents' runtime, and through that the link to the host.
 */

/**
 * Built-ins that the platform calls with its own objects. Built-ins of strings, numbers, dates and errors are not in
 * the list: they receive only values, and libraries may change them.
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

/** Apps assign these names on their own objects. A read-only property of the prototype would make that throw. */
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
  // A new property of Object.prototype would appear on every object without such a property, including the platform's
  // objects.
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
