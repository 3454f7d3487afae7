/** Files in a request: the document itself, and the styles, images, fonts and scripts that it names. */
import { z } from "zod";
import { shapedLike } from "../../http/shaped-like.ts";
import { FILE_NAME_CHARS_MAX, FILES_MAX, SOURCES_MAX } from "../limits.ts";
import { HttpUrl, SubmittedHtml } from "./document-source.ts";

/**
 * Possible names of the document among the files. If the files contain both, the first name in this list is the
 * document.
 */
export const INDEX_NAMES = ["index.html", "index.md"] as const;
/** Maximum number of file names that an error message lists. */
const NAMES_SHOWN = 5;

const FileName = z
  .string()
  // Some systems write "é" in a file name as two characters where the document uses one, so names are normalised. The
  // normal form of other characters may be longer.
  .normalize()
  .min(1)
  .max(FILE_NAME_CHARS_MAX)
  .superRefine((name, context) => {
    const message = nameFault(name);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

const Base64 = z.string().refine((text) => isBase64(text), { error: "Expected text in base64" });

const PageFile = z.strictObject(
  {
    name: FileName.describe("Path relative to the document, for example assets/style.css"),
    base64: Base64.describe("The file's bytes in base64"),
  },
  { error: shapedLike({ name: "index.html", base64: "PGgxPkhlbGxvPC9oMT4=" }) },
);
export type PageFile = z.output<typeof PageFile>;

export const Files = z
  .array(PageFile)
  .min(1)
  .max(FILES_MAX)
  .superRefine((files, context) => {
    const names = new Set<string>();
    for (const [index, { name }] of files.entries()) {
      if (names.has(name)) {
        const message = `Expected no duplicate names: ${name} occurs twice`;
        context.addIssue({ code: "custom", path: [index, "name"], message });
      }
      names.add(name);
    }
  })
  .describe(
    "Files of the page, at an origin of their own: index.html or index.md, and what it names. In multipart/form-data they are the parts named files",
  );

const Source = z
  .strictObject(
    {
      url: HttpUrl,
      html: SubmittedHtml,
      file: z.string().min(1).max(FILE_NAME_CHARS_MAX).describe("The name of one of `files`"),
    },
    { error: shapedLike({ file: "chapter-1.html" }) },
  )
  .partial()
  .refine((source) => Object.values(source).filter((value) => value !== undefined).length === 1, {
    error: "Expected exactly one of url, html and file",
    when: ({ issues }) => issues.length === 0,
  });
export type Source = z.output<typeof Source>;

export const Sources = z
  .array(Source)
  .min(1)
  .max(SOURCES_MAX)
  .describe(
    "Documents that become one PDF, in this order, in place of url and html. Header and footer count their pages through",
  );

interface FilesAndSources {
  files?: readonly PageFile[] | undefined;
  sources?: readonly Source[] | undefined;
}

/** Returns an error for each document that the request names or requires but that is missing among its files. */
export function missingFiles({ files, sources }: FilesAndSources) {
  const names = new Set(files?.map(({ name }) => name));
  if (sources === undefined) {
    if (files === undefined || INDEX_NAMES.some((name) => names.has(name))) return [];
    const found = [...names].slice(0, NAMES_SHOWN).join(", ");
    const message = `Expected ${INDEX_NAMES.join(" or ")} at the top among the names, found ${found}`;
    return [{ path: ["files"], message }];
  }
  return sources.flatMap(({ file }, index) =>
    file === undefined || names.has(file.normalize())
      ? []
      : [{ path: ["sources", index, "file"], message: "Expected the name of one of files" }],
  );
}

function nameFault(name: string): string | undefined {
  if (name.startsWith("/") || /^[A-Za-z]:/.test(name)) {
    return "Expected a path below the document's folder, and not an absolute one";
  }
  if (name.includes("\\")) return "Expected a path with / between its parts, and no \\";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no name has control characters.
  if (/[\u0000-\u001f\u007f]/.test(name)) return "Expected a path without control characters";
  const parts = name.split("/");
  if (parts.includes("..")) return "Expected a path below the document's folder, without ..";
  if (parts.includes(".") || parts.includes("")) return "Expected a path without empty parts and .";
  if (!name.isWellFormed()) return "Expected a path that is Unicode";
  return undefined;
}

/** Replaces Zod's own base64 pattern. That pattern repeats a group, which fails on a text of several megabytes. */
function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}
