/** Cuts what a caller sent, which may be as long as a body, to what an answer repeats of it. */
import { FAULT_CHARS_MAX } from "../../schemas/limits.ts";

export function shortened(text: string, charsMax = FAULT_CHARS_MAX): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}
