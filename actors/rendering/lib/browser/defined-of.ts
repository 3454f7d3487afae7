/** The same type, but its fields may also be present with the value undefined. */
type Loose<T> = { [K in keyof T]: T[K] | undefined };

/** Returns the object without fields that are undefined, as `exactOptionalPropertyTypes` requires. */
export function definedOf<T extends object>(object: Loose<T>): T {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as T;
}
