/** Converts names of the REST API to names in code: `last_push_at` becomes `lastPushAt`. */

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S;
export type Camelized<T> = T extends readonly (infer Item)[]
  ? Camelized<Item>[]
  : T extends object
    ? { [K in keyof T as K extends string ? Camel<K> : K]: Camelized<T[K]> }
    : T;

export function camelized<T>(value: T): Camelized<T> {
  if (Array.isArray(value)) return value.map((item) => camelized(item)) as Camelized<T>;
  if (typeof value !== "object" || value === null) return value as Camelized<T>;
  const entries = Object.entries(value).map(([name, member]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    camelized(member),
  ]);
  return Object.fromEntries(entries) as Camelized<T>;
}
