/** Finds a method of an agent by a name that came from outside. */

export type Method = (...args: unknown[]) => unknown;

const fromObject = new Set(Object.getOwnPropertyNames(Object.prototype));

/** Undefined for what every object has, and for what is no function. */
export function methodOf(instance: object, name: string): Method | undefined {
  if (fromObject.has(name)) return undefined;
  const value = (instance as Record<string, unknown>)[name];
  return typeof value === "function" ? (value as Method) : undefined;
}

/** Before something is kept that will call it. */
export function assertMethod(instance: object, name: unknown): asserts name is string {
  if (typeof name === "string" && methodOf(instance, name) !== undefined) return;
  throw new TypeError(`this.${String(name)} is not a function`);
}
