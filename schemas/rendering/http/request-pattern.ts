/** Regular expressions of clients, matched in time linear in the text, so that none can hang a worker. */
import { RE2JS, RE2JSException } from "re2js";
import { PATTERN_INSTRUCTIONS_MAX } from "../../limits.ts";

/** A pattern that can be held against an address. */
export interface RequestPattern {
  test(url: string): boolean;
}

const FLAGS = { i: RE2JS.CASE_INSENSITIVE, m: RE2JS.MULTILINE, s: RE2JS.DOTALL };

/**
 * Compiles `/expression/flags`, `/expression` or a bare `expression`; it matches anywhere in an address.
 * Flags as in JavaScript; `i`, `m` and `s` have a meaning here, `d`, `g`, `u`, `v` and `y` have none.
 * Throws a `SyntaxError` that says what is wrong. Look-around and back references are not linear and so are refused.
 */
export function compilePattern(text: string): RequestPattern {
  const [, expression = text, flags = ""] = /^\/(.+?)(?:\/([dgimsuvy]*))?$/s.exec(text) ?? [];
  let bits = 0;
  for (const [flag, bit] of Object.entries(FLAGS)) if (flags.includes(flag)) bits |= bit;
  const pattern = compile(expression, bits);
  if (pattern.programSize() > PATTERN_INSTRUCTIONS_MAX) {
    throw new SyntaxError(
      `The pattern is too large: it compiles to more than ${PATTERN_INSTRUCTIONS_MAX} steps`,
    );
  }
  return pattern;
}

function compile(expression: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(expression), flags);
  } catch (error) {
    if (error instanceof RE2JSException) throw new SyntaxError(error.message, { cause: error });
    throw error;
  }
}
