/** Reads JSON more strictly than JSON.parse: errors name line and column, and duplicate fields are refused. */
import { ActorError } from "../../schemas/errors.ts";
import { JSON_DEPTH_MAX } from "../../schemas/limits.ts";
import { shortened } from "./shortened.ts";

/**
 * Limits the fields and array items of a body. The largest legitimate request has a few hundred; the HTML of a page
 * is a single field.
 */
export const JSON_VALUES_MAX = 10_000;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Parses UTF-8 bytes. Throws `invalid_request` with line and column of the first fault. */
export function readJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  new JsonText(text).check();
  return JSON.parse(text);
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new ActorError("invalid_request", "Cannot accept body: it is not UTF-8");
  }
}

/** Sticky patterns for the tokens of RFC 8259. */
const BLANK = /[\t\n\r ]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /true|false|null/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a string holds no control characters (RFC 8259 section 7).
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** One level of nesting: the names of the fields that an object has had so far, or `undefined` for an array. */
type Level = Set<string> | undefined;

/** Scans a JSON text once, without recursion, so that deep nesting does not overflow the stack. */
class JsonText {
  readonly #text: string;
  readonly #levels: Level[] = [];
  /** The next character to read. */
  #at = 0;
  /** The number of fields and items so far. It starts at -1, because the outermost value is neither. */
  #values = -1;
  /** True directly after `[`, where `]` may follow. */
  #mayClose = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** Throws `invalid_request` at the first fault. */
  check(): void {
    let valueNext = true;
    this.#skip(BLANK);
    for (;;) {
      if (valueNext && this.#readValue()) continue;
      this.#skip(BLANK);
      if (this.#levels.length === 0) {
        if (this.#at < this.#text.length) this.#fail("expected the end");
        return;
      }
      valueNext = this.#readAfterValue();
    }
  }

  /** Reads the start of a value. Returns true if this opened an object or array whose first value comes next. */
  #readValue(): boolean {
    const character = this.#text[this.#at];
    if (character === "]" && this.#mayClose) {
      this.#close();
      return false;
    }
    this.#mayClose = false;
    // The values are counted before JSON.parse creates any of them.
    if (++this.#values > JSON_VALUES_MAX) {
      this.#fail(`expected at most ${JSON_VALUES_MAX} fields and array items`);
    }
    if (character === "{" || character === "[") return this.#open(character);
    if (character === '"') this.#readString();
    else if (!this.#skip(NUMBER) && !this.#skip(WORD)) this.#fail("expected a value");
    return false;
  }

  #open(character: string): boolean {
    if (this.#levels.length === JSON_DEPTH_MAX) {
      this.#fail(`expected at most ${JSON_DEPTH_MAX} levels of nesting`);
    }
    this.#levels.push(character === "{" ? new Set() : undefined);
    this.#at++;
    this.#skip(BLANK);
    if (character === "[") this.#mayClose = true;
    else if (this.#text[this.#at] === "}") {
      this.#close();
      return false;
    } else this.#readField();
    return true;
  }

  /** Reads the text after a value. Returns true if another value follows. */
  #readAfterValue(): boolean {
    const fields = this.#levels.at(-1);
    const end = fields ? "}" : "]";
    const character = this.#text[this.#at];
    if (character === end) {
      this.#close();
      return false;
    }
    if (character !== ",") this.#fail(`expected "," or "${end}"`);
    this.#at++;
    this.#skip(BLANK);
    if (fields) this.#readField();
    return true;
  }

  #readField(): void {
    const start = this.#at;
    if (this.#text[start] !== '"') this.#fail("expected a field's name in double quotes");
    this.#readString();
    const name: string = JSON.parse(this.#text.slice(start, this.#at));
    const fields = this.#levels.at(-1);
    // The field "__proto__" is refused: code that copies fields one by one would change the prototype of its object.
    if (name === "__proto__") this.#fail('a field cannot be named "__proto__"', start);
    if (fields?.has(name)) {
      this.#fail(`the field ${shortened(JSON.stringify(name))} is given twice`, start);
    }
    fields?.add(name);
    this.#skip(BLANK);
    if (this.#text[this.#at] !== ":") this.#fail('expected ":"');
    this.#at++;
    this.#skip(BLANK);
  }

  #readString(): void {
    this.#at++;
    for (;;) {
      this.#skip(PLAIN);
      if (this.#text[this.#at] === '"') break;
      if (!this.#skip(ESCAPE)) this.#fail("expected the rest of a string");
    }
    this.#at++;
  }

  #close(): void {
    this.#levels.pop();
    this.#mayClose = false;
    this.#at++;
  }

  /** Returns whether the pattern matched one character or more. */
  #skip(pattern: RegExp): boolean {
    const start = this.#at;
    pattern.lastIndex = start;
    if (pattern.test(this.#text)) this.#at = pattern.lastIndex;
    return this.#at > start;
  }

  #fail(what: string, position = this.#at): never {
    let line = 1;
    let lineStart = 0;
    for (let next = this.#text.indexOf("\n"); next >= 0 && next < position; line++) {
      lineStart = next + 1;
      next = this.#text.indexOf("\n", lineStart);
    }
    const column = position - lineStart + 1;
    const place = `line ${line}, column ${column} (position ${position})`;
    throw new ActorError("invalid_request", `Cannot accept body: ${what} at ${place}`);
  }
}
