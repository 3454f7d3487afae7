/** Paper: its named sizes, lengths with units, and the area within the margins. */
import { z } from "zod";
import { PAPER_INCHES_MAX } from "../../limits.ts";

/** Width and height in inches, in portrait format. The exception is ledger, which is tabloid in landscape format. */
const PAPER_SIZES = {
  letter: { width: 8.5, height: 11 },
  legal: { width: 8.5, height: 14 },
  tabloid: { width: 11, height: 17 },
  ledger: { width: 17, height: 11 },
  a0: { width: 33.1102, height: 46.811 },
  a1: { width: 23.3858, height: 33.1102 },
  a2: { width: 16.5354, height: 23.3858 },
  a3: { width: 11.6929, height: 16.5354 },
  a4: { width: 8.2677, height: 11.6929 },
  a5: { width: 5.8268, height: 8.2677 },
  a6: { width: 4.1339, height: 5.8268 },
} as const;
type PaperFormat = keyof typeof PAPER_SIZES;

const FORMATS = Object.keys(PAPER_SIZES) as PaperFormat[];
const UNITS_PER_INCH = { px: 96, in: 1, cm: 2.54, mm: 25.4 };
const LENGTH = /^(\d+(?:\.\d*)?|\.\d+)\s*(px|in|cm|mm)?$/i;
const LENGTH_RULE = `Expected pixels as a number, or a number with px, in, cm or mm, from 0 to ${PAPER_INCHES_MAX}in`;

/** A number of CSS pixels, or text with a unit. */
export const Length = z
  .union([z.number(), z.string()], { error: LENGTH_RULE })
  .refine((length) => isLength(inchesOf(length)), { error: LENGTH_RULE })
  .describe("CSS pixels as a number, or a number with the unit px, in, cm or mm");
export type Length = number | string;

export const Format = z
  .string()
  .refine((format) => isFormat(format.toLowerCase()), {
    error: `Expected one of ${FORMATS.join(", ")}, in any case`,
  })
  .meta({
    description:
      "Paper size, in upper or lower case; overrides width and height. Letter if format, width and height are absent",
    enum: FORMATS,
  });

interface Margin {
  top?: Length | undefined;
  right?: Length | undefined;
  bottom?: Length | undefined;
  left?: Length | undefined;
}

interface PaperOptions {
  format?: string | undefined;
  width?: Length | undefined;
  height?: Length | undefined;
  landscape?: boolean | undefined;
  margin?: Margin | undefined;
}

/** Returns the size of the sheet before `landscape` is applied, and its margins, in inches. */
export function paperOf(options: PaperOptions) {
  const format = options.format?.toLowerCase() ?? "letter";
  const named = isFormat(format) ? PAPER_SIZES[format] : PAPER_SIZES.letter;
  const { width, height } = options.format === undefined ? options : {};
  const { top = 0, right = 0, bottom = 0, left = 0 } = options.margin ?? {};
  return {
    width: width === undefined ? named.width : inchesOf(width),
    height: height === undefined ? named.height : inchesOf(height),
    top: inchesOf(top),
    right: inchesOf(right),
    bottom: inchesOf(bottom),
    left: inchesOf(left),
  };
}

/** Returns the width and height in inches that the margins leave, after `landscape` is applied. */
export function contentAreaOf(options: PaperOptions) {
  const { width, height, top, right, bottom, left } = paperOf(options);
  const [across, down] = options.landscape ? [height, width] : [width, height];
  return { width: across - left - right, height: down - top - bottom };
}

/** Converts a length to inches. Returns NaN for an invalid length. */
function inchesOf(length: Length): number {
  if (typeof length === "number") return length / UNITS_PER_INCH.px;
  const [, digits, unit] = LENGTH.exec(length.trim()) ?? [];
  if (digits === undefined) return Number.NaN;
  const name = (unit?.toLowerCase() ?? "px") as keyof typeof UNITS_PER_INCH;
  return Number(digits) / UNITS_PER_INCH[name];
}

function isLength(inches: number): boolean {
  return inches >= 0 && inches <= PAPER_INCHES_MAX;
}

function isFormat(format: string): format is PaperFormat {
  return Object.hasOwn(PAPER_SIZES, format);
}
