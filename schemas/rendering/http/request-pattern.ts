/**
 * Regular expressions of clients. The time of a match is linear in the length of the text, so no expression can block
 * a worker.
 */
import { RE2JS, RE2JSException } from "re2js";
import { PATTERN_INSTRUCTIONS_MAX } from "../../limits.ts";

/** A compiled pattern that can be tested against an address. */
export interface RequestPattern {
  test(url: string): boolean;
}

const FLAGS = { i: RE2JS.CASE_INSENSITIVE, m: RE2JS.MULTILINE, s: RE2JS.DOTALL };

/**
 * Compiles `/expression/flags`, `/expression` or a bare `expression`. The pattern may match at any position of an
 * address. The flags of JavaScript are accepted: `i`, `m` and `s` have an effect, `d`, `g`, `u`, `v` and `y` have
 * none. Throws a `SyntaxError` that describes the fault. Look-around and back references are refused, because they
 * cannot be matched in linear time.
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
