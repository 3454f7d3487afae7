/** Absent fields for those that are there and undefined. */
type Loose<T> = { [K in keyof T]: T[K] | undefined };

/** The object without what is undefined, as types want it that know absent fields only. */
export function definedOf<T extends object>(object: Loose<T>): T {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as T;
}
