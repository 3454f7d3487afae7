/** Shortens a text of the client before an error message repeats it. The text may be as long as the whole body. */
import { FAULT_CHARS_MAX } from "../../schemas/limits.ts";

export function shortened(text: string, charsMax = FAULT_CHARS_MAX): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}
