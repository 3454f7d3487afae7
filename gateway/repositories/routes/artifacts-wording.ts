/** Error numbers and pointers of the public API for refusals about repositories. */
import { ERRORS, type ErrorCode } from "../../../schemas/errors.ts";
import type { RefusalWording } from "../../http/route.ts";

const NUMBERS: Partial<Record<ErrorCode, number>> = {
  invalid_request: 10100,
  not_found: 10200,
  conflict: 10201,
  internal_error: 10400,
};
/** Error numbers of single fields. */
const OF_FIELDS: Readonly<Record<string, number>> = {
  "/name": 10101,
  "/ttl": 10103,
  "/url": 10104,
};

export const artifactsWording: RefusalWording = {
  code(name, pointer) {
    const ofField = name === "invalid_request" ? OF_FIELDS[pointer] : undefined;
    return ofField ?? NUMBERS[name] ?? ERRORS[name].code;
  },
  /** The public API names only the field, so `/query` or `/path` before its name is removed. */
  pointer: (pointer) => pointer.replace(/^\/(?:query|path)(?=\/)/, ""),
};
