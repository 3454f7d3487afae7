/** Queries of addresses. */

export type Query = Readonly<Record<string, string | undefined>>;

/** Returns the query with its question mark, without what is empty. */
export function queryOf(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value ? [[name, value] as [string, string]] : [],
  );
  const text = new URLSearchParams(given).toString();
  return text && `?${text}`;
}
