/** HTML as values. Everything put into a template is escaped, except the result of another template. */

export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Part = Html | string | number | false | undefined | null | readonly Part[];

/** Everything that is not Html itself becomes text; false and nothing become nothing. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  const written = strings.map(
    (text, index) => text + (index < parts.length ? write(parts[index]) : ""),
  );
  return new Html(written.join(""));
}

function write(part: Part): string {
  if (part === false || part === undefined || part === null) return "";
  if (part instanceof Html) return part.toString();
  if (typeof part === "string" || typeof part === "number") return escaped(String(part));
  return part.map(write).join("");
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string) =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
