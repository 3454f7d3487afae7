/** Finds a method of an agent by a name that came from outside. */

export type Method = (...args: unknown[]) => unknown;

const fromObject = new Set(Object.getOwnPropertyNames(Object.prototype));

/** Returns the method; undefined for members of every object and for values that are no functions. */
export function methodOf(instance: object, name: string): Method | undefined {
  if (fromObject.has(name)) return undefined;
  const value = (instance as Record<string, unknown>)[name];
  return typeof value === "function" ? (value as Method) : undefined;
}

/** Throws if the method does not exist. Call it before a call of the method is stored. */
export function assertMethod(instance: object, name: unknown): asserts name is string {
  if (typeof name === "string" && methodOf(instance, name) !== undefined) return;
  throw new TypeError(`this.${String(name)} is not a function`);
}
