/** The properties of a PDF. PDF viewers show its title and authors, and search programs use them. */
import { z } from "zod";
import { KEYWORDS_MAX, METADATA_CHARS_MAX } from "../limits.ts";

const Text = z
  .string()
  .max(METADATA_CHARS_MAX)
  .refine((text) => text.isWellFormed(), {
    error: "Expected text that is Unicode",
  });

export const PdfMetadata = z
  .strictObject({
    title: Text.optional(),
    author: Text.optional(),
    subject: Text.optional(),
    keywords: z
      .union([Text, z.array(Text).max(KEYWORDS_MAX)], {
        error: "Expected a text, or an array of texts",
      })
      .transform((keywords) => (typeof keywords === "string" ? keywords : keywords.join(", ")))
      .pipe(Text)
      .optional()
      .describe("One text, or a list of texts"),
  })
  .describe(
    "Properties of the document. Those that are absent come from the page: its title, and its meta tags author, subject or description, and keywords",
  );
export type PdfMetadata = z.output<typeof PdfMetadata>;
