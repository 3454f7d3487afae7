/** The request that the playground edits: one object, shown both as form fields and as JSON. */
import type { Field } from "../parts/form.tsx";

export const ACTIONS = [
  ["pdf", "PDF"],
  ["screenshot", "Screenshot"],
  ["markdown", "Markdown"],
  ["links", "Links"],
] as const;

/** The body of the request. The playground also keeps fields for which it has no form. */
export type Body = Record<string, unknown>;

export const FIRST_BODY: Body = {
  html: '<h1 style="font-family: sans-serif">Hello from Trunkline</h1>',
};

/** Removes the options of other actions, because the API would refuse them as unknown fields. */
export function bodyFor(action: string, body: Body): Body {
  const { pdfOptions, screenshotOptions, selector, ...both } = body;
  const own =
    action === "pdf" ? { pdfOptions } : action === "screenshot" && { screenshotOptions, selector };
  const given = Object.entries(own || {}).filter(([, value]) => value !== undefined);
  return { ...both, ...Object.fromEntries(given) };
}

/** Returns the file extension for a result's media type. A screenshot in base64 is plain text. */
export function extensionOf(mediaType: string): string {
  const [, subtype = ""] = /^\w+\/(pdf|png|jpeg|webp|json|plain)\b/.exec(mediaType) ?? [];
  return subtype === "plain" ? "txt" : subtype || "bin";
}

/** A form field for an option. Its name is the option's path in the request, such as "pdfOptions.format". */
type OptionField = Field<Record<string, string | boolean>>;

const preset = (options: readonly string[]) => [
  ["", "Default"] as const,
  ...options.map((one) => [one, one] as const),
];
const OPTIONS: Readonly<Record<string, readonly OptionField[]>> = {
  pdf: [
    {
      ...{ name: "pdfOptions.format", label: "Paper" },
      options: preset(["letter", "legal", "tabloid", "a3", "a4", "a5"]),
    },
    {
      ...{ name: "pdfOptions.scale", label: "Scale", type: "number", step: 0.1 },
      placeholder: "1",
    },
    { name: "pdfOptions.landscape", label: "Landscape" },
    { name: "pdfOptions.printBackground", label: "Backgrounds" },
    { name: "pdfOptions.outline", label: "Bookmarks from headings" },
  ],
  screenshot: [
    {
      ...{ name: "screenshotOptions.type", label: "Type" },
      options: preset(["png", "jpeg", "webp"]),
    },
    { name: "viewport", label: "Window" },
    { name: "screenshotOptions.fullPage", label: "The whole page" },
    { name: "screenshotOptions.omitBackground", label: "Transparent background" },
  ],
};
const WAIT: OptionField = {
  ...{ name: "gotoOptions.waitUntil", label: "Wait until" },
  options: preset(["settled", "load", "domcontentloaded", "networkidle0", "networkidle2"]),
};
const WINDOWS = ["1920x1080", "1280x800", "768x1024", "390x844"];

/** Returns the form fields of the most used options. All other options can only be written as JSON. */
export function optionsForm(action: string, body: Body, onChange: (body: Body) => void) {
  const size = sizeOf(body);
  const sizes = size === "" || WINDOWS.includes(size) ? WINDOWS : [...WINDOWS, size];
  const windows = [
    ["", "Default (1920 × 1080)"] as const,
    ...sizes.map((one) => [one, one.replace("x", " × ")] as const),
  ];
  const fields = [...(OPTIONS[action] ?? []), WAIT].map((field) =>
    field.name === "viewport" ? { ...field, options: windows } : field,
  );
  const values = fields.map((field) => {
    const value = field.name === "viewport" ? size : valueAt(body, field.name);
    // A field without options and without a type is a checkbox.
    return [field.name, field.options || field.type ? String(value ?? "") : value === true];
  });
  const change = (changed: Partial<Record<string, string | boolean>>) => {
    for (const [name, value] of Object.entries(changed)) {
      onChange(withValue(body, name, sentOf(name, value)));
    }
  };
  return { fields, form: { values: Object.fromEntries(values), change } };
}

/**
 * Converts a field's value to its value in the request. Returns undefined for an empty field or an unticked checkbox,
 * so that the API's default applies.
 */
function sentOf(name: string, value: string | boolean | undefined): unknown {
  if (!value) return undefined;
  if (name === "pdfOptions.scale") return Number(value);
  if (name !== "viewport") return value;
  const [width, height] = String(value).split("x").map(Number);
  return { width, height };
}

/** Returns the viewport as "<width>x<height>". Empty if the body has neither width nor height. */
function sizeOf(body: Body): string {
  const [width, height] = [valueAt(body, "viewport.width"), valueAt(body, "viewport.height")];
  return width === undefined && height === undefined ? "" : `${width ?? ""}x${height ?? ""}`;
}

/** Reads a value at a path such as "pdfOptions.format". */
function valueAt(body: Body, path: string): unknown {
  let value: unknown = body;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Body)[name];
  }
  return value;
}

/**
 * Returns a copy of the body with the value at the path. If the value is undefined, removes the field and empty
 * objects around it.
 */
function withValue(body: Body, path: string, value: unknown): Body {
  const [name = "", ...rest] = path.split(".");
  const before = body[name];
  const inner = typeof before === "object" && before !== null ? (before as Body) : {};
  const next = rest.length === 0 ? value : orNothing(withValue(inner, rest.join("."), value));
  const { [name]: _before, ...others } = body;
  return next === undefined ? others : { ...body, [name]: next };
}

const orNothing = (body: Body) => (Object.keys(body).length === 0 ? undefined : body);
