/** A rendering request as the playground edits it: one object, shown as fields and as JSON. */

export type Action = "pdf" | "screenshot";

/** The body of the request. The playground keeps fields that it has no form for. */
export type Body = Record<string, unknown>;

export const FIRST_BODY: Body = {
  html: '<h1 style="font-family: sans-serif">Hello from Trunkline</h1>',
};

/** Reads a value at a path such as "pdfOptions.format". */
export function valueAt(body: Body, path: string): unknown {
  let value: unknown = body;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Body)[name];
  }
  return value;
}

/** Returns the body with another value at the path; undefined takes the field away, and empty objects with it. */
export function withValue(body: Body, path: string, value: unknown): Body {
  const [name = "", ...rest] = path.split(".");
  const before = body[name];
  const inner = typeof before === "object" && before !== null ? (before as Body) : {};
  const next = rest.length === 0 ? value : orNothing(withValue(inner, rest.join("."), value));
  const { [name]: _before, ...others } = body;
  return next === undefined ? others : { ...body, [name]: next };
}

const orNothing = (body: Body) => (Object.keys(body).length === 0 ? undefined : body);

/** Options of the other action would be refused as unknown fields. */
export function bodyFor(action: Action, body: Body): Body {
  const { pdfOptions, screenshotOptions, selector, ...both } = body;
  const own = action === "pdf" ? { pdfOptions } : { screenshotOptions, selector };
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...both, ...Object.fromEntries(given) };
}
