/** Reads JSON more strictly than JSON.parse: a fault has its place, and no field is given twice. */
import { ActorError } from "../../schemas/errors.ts";
import { JSON_DEPTH_MAX, JSON_VALUES_MAX } from "../../schemas/limits.ts";
import { shortened } from "./shortened.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Throws `invalid_request` with line and column of the first fault. */
export function readJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  checkJson(text);
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

/** One level of nesting: the fields of an object so far, or `undefined` in an array. */
type Level = Set<string> | undefined;

/** Walks a text once, without recursion, whatever is nested in it. */
function checkJson(text: string): void {
  const levels: Level[] = [];
  let at = 0;
  // The outermost value is neither a field nor an item.
  let values = -1;
  let valueNext = true;
  let emptyAllowed = false;
  skip(BLANK);
  for (;;) {
    if (valueNext) {
      const opened = readValue();
      if (opened) continue;
    }
    skip(BLANK);
    if (levels.length === 0) {
      if (at < text.length) fail("expected the end");
      return;
    }
    valueNext = readAfterValue();
  }

  /** True when a container opened that has a value to come. */
  function readValue(): boolean {
    const character = text[at];
    if (character === "]" && emptyAllowed) {
      close();
      return false;
    }
    emptyAllowed = false;
    // Only once this is known to hold is a value of the text built.
    if (++values > JSON_VALUES_MAX) {
      fail(`expected at most ${JSON_VALUES_MAX} fields and array items`);
    }
    if (character === "{" || character === "[") return open(character);
    if (character === '"') readString();
    else if (!skip(NUMBER) && !skip(WORD)) fail("expected a value");
    return false;
  }

  function open(character: string): boolean {
    if (levels.length === JSON_DEPTH_MAX) {
      fail(`expected at most ${JSON_DEPTH_MAX} levels of nesting`);
    }
    levels.push(character === "{" ? new Set() : undefined);
    at++;
    skip(BLANK);
    if (character === "[") emptyAllowed = true;
    else if (text[at] === "}") {
      close();
      return false;
    } else readField();
    return true;
  }

  /** True when another value follows. */
  function readAfterValue(): boolean {
    const fields = levels.at(-1);
    const end = fields ? "}" : "]";
    if (text[at] === end) {
      close();
      return false;
    }
    if (text[at] !== ",") fail(`expected "," or "${end}"`);
    at++;
    skip(BLANK);
    if (fields) readField();
    return true;
  }

  function readField(): void {
    const start = at;
    if (text[at] !== '"') fail("expected a field's name in double quotes");
    readString();
    const name: string = JSON.parse(text.slice(start, at));
    const fields = levels.at(-1);
    // Where a program copies fields one by one, this name would change the object itself.
    if (name === "__proto__") fail('a field cannot be named "__proto__"', start);
    if (fields?.has(name))
      fail(`the field ${shortened(JSON.stringify(name))} is given twice`, start);
    fields?.add(name);
    skip(BLANK);
    if (text[at] !== ":") fail('expected ":"');
    at++;
    skip(BLANK);
  }

  function readString(): void {
    at++;
    for (;;) {
      skip(PLAIN);
      if (text[at] === '"') break;
      if (!skip(ESCAPE)) fail("expected the rest of a string");
    }
    at++;
  }

  function close(): void {
    levels.pop();
    emptyAllowed = false;
    at++;
  }

  /** Whether anything was skipped. */
  function skip(pattern: RegExp): boolean {
    pattern.lastIndex = at;
    const start = at;
    if (pattern.test(text)) at = pattern.lastIndex;
    return at > start;
  }

  function fail(what: string, position = at): never {
    let line = 1;
    let lineStart = 0;
    for (let next = text.indexOf("\n"); next >= 0 && next < position; line++) {
      lineStart = next + 1;
      next = text.indexOf("\n", lineStart);
    }
    const column = position - lineStart + 1;
    const place = `line ${line}, column ${column} (position ${position})`;
    throw new ActorError("invalid_request", `Cannot accept body: ${what} at ${place}`);
  }
}
