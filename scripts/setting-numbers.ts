/** Parsers of the settings that are numbers. */
import { z } from "zod";

/** The largest number of bytes that a setting accepts. */
export const BYTES_MAX = 10 ** 14;

/** Parses a whole number with a default. */
export function whole(min: number, max: number, preset: number) {
  return integer(min, max).default(preset);
}

/** Parses a whole number. */
export function integer(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, `a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `a whole number from ${min} to ${max}`);
}

/** Parses a power of two, which may be absent. */
export function powerOfTwo(min: number, max: number) {
  const wanted = `a power of two from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, wanted)
    .transform(Number)
    .refine((value) => value >= min && value <= max && Number.isInteger(Math.log2(value)), wanted)
    .optional();
}
