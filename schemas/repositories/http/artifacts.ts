/** Wire shapes of requests about repositories. */
import { z } from "zod";
import { AccountPath } from "../../account/http/accounts.ts";
import { BranchName, NamespaceName, ObjectId, ProtectedRef, RepoName } from "../git-names.ts";
import { fileTooLarge } from "../git-sizes.ts";
import { IMPORT_URL_RULE, importUrlOf } from "../import-url.ts";
import {
  COMMIT_AUTHOR_CHARS_MAX,
  COMMIT_CHANGES_MAX,
  COMMIT_MESSAGE_CHARS_MAX,
  COMMIT_NAME_BYTES_MAX,
  COMMIT_PATH_DEPTH_MAX,
  CURSOR_CHARS_MAX,
  FILE_BYTES_MAX,
  IMPORT_DEPTH_MAX,
  IMPORT_URL_CHARS_MAX,
  LOG_ENTRIES,
  LOG_ENTRIES_MAX,
  LOG_OFFSET_MAX,
  NAMESPACE_LIST,
  NAMESPACE_LIST_MAX,
  PATH_BYTES_MAX,
  PROTECTED_REFS_MAX,
  REF_CHARS_MAX,
  REF_LIST,
  REF_LIST_MAX,
  REPO_DESCRIPTION_CHARS_MAX,
  REPO_LIST,
  REPO_LIST_MAX,
  REPO_TOKEN_LIST,
  REPO_TOKEN_LIST_MAX,
  REPO_TOKEN_TTL_S,
  REPO_TOKEN_TTL_S_MAX,
  REPO_TOKEN_TTL_S_MIN,
  SEARCH_CHARS_MAX,
} from "../limits.ts";
import { RepoSort } from "../namespace.ts";
import { RepoTokenId, RepoTokenScope, RepoTokenState } from "../repo.ts";

const utf8 = new TextEncoder();

// --- Paths ---

export const NamespacePath = AccountPath.extend({
  namespace: NamespaceName.describe("A namespace of the account"),
});
export const RepoPath = NamespacePath.extend({
  name: RepoName.describe("A repository of the namespace"),
});
export type RepoPath = z.output<typeof RepoPath>;
export const RepoTokenPath = NamespacePath.extend({ token_id: RepoTokenId });
export const ObjectPath = RepoPath.extend({
  hash: z.string().regex(/^[0-9a-f]{40}$/, "Invalid SHA-1 hash, expected 40 lower-case hex digits"),
});
const Ref = z
  .string()
  .min(1)
  .max(REF_CHARS_MAX)
  .describe("A branch, a tag, a whole ref such as refs/heads/main, the id of a commit, or HEAD");
const FilePath = z
  .string()
  .min(1)
  .refine((path) => utf8.encode(path).length <= PATH_BYTES_MAX, {
    error: `Expected at most ${PATH_BYTES_MAX} bytes`,
  })
  .describe("Path from the root of the repository");
export const RawPath = RepoPath.extend({
  ref: Ref.describe("A ref; write %2F for a slash in it"),
  path: FilePath,
});
export const ArchivePath = RepoPath.extend({
  archive: z
    .string()
    .max(REF_CHARS_MAX + ".tar.gz".length)
    .regex(/^.+\.(tar\.gz|zip)$/s, "Expected a ref followed by .tar.gz or .zip")
    .describe("A ref followed by .tar.gz or .zip"),
});

// --- Queries ---

const Cursor = z
  .string()
  .min(1)
  .max(CURSOR_CHARS_MAX)
  .optional()
  .describe("The cursor of the previous response");
const whole = (least: number, most: number) => z.coerce.number().pipe(z.int().min(least).max(most));

export const NamespacesQuery = z.strictObject({
  limit: whole(1, NAMESPACE_LIST_MAX).default(NAMESPACE_LIST),
  cursor: Cursor,
});
export type NamespacesQuery = z.output<typeof NamespacesQuery>;

export const ReposQuery = z.strictObject({
  limit: whole(1, REPO_LIST_MAX).default(REPO_LIST),
  cursor: Cursor,
  search: z
    .string()
    .max(SEARCH_CHARS_MAX)
    .optional()
    .describe("A part of the name; case is ignored"),
  sort: RepoSort.default("created_at"),
  direction: z.enum(["asc", "desc"]).default("desc"),
});
export type ReposQuery = z.output<typeof ReposQuery>;

export const LogQuery = z.strictObject({
  ref: Ref.default("HEAD"),
  limit: z.coerce
    .number()
    .pipe(z.int().min(1))
    .transform((limit) => Math.min(limit, LOG_ENTRIES_MAX))
    .default(LOG_ENTRIES)
    .describe(`More than ${LOG_ENTRIES_MAX} are ${LOG_ENTRIES_MAX}`),
  offset: whole(0, LOG_OFFSET_MAX).default(0),
});
export type LogQuery = z.output<typeof LogQuery>;

export const FileQuery = z.strictObject({ ref: Ref, path: FilePath });
export type FileQuery = z.output<typeof FileQuery>;

export const RefsQuery = z.strictObject({
  prefix: z
    .string()
    .max(REF_CHARS_MAX)
    .default("refs/")
    .describe("Returns only refs whose names start with this prefix, such as refs/heads/"),
  limit: whole(1, REF_LIST_MAX).default(REF_LIST),
  cursor: Cursor,
});
export type RefsQuery = z.output<typeof RefsQuery>;

export const DiffQuery = z.strictObject({
  base: Ref.optional().describe(
    "As head; without it head is compared with nothing, as a first commit is",
  ),
  head: Ref,
});
export type DiffQuery = z.output<typeof DiffQuery>;

export const RepoTokensQuery = z.strictObject({
  state: z.enum([...RepoTokenState.options, "all"]).default("active"),
  per_page: whole(1, REPO_TOKEN_LIST_MAX).default(REPO_TOKEN_LIST),
  page: whole(1, 1_000_000).default(1),
});
export type RepoTokensQuery = z.output<typeof RepoTokensQuery>;

// --- Bodies ---

/** A text in well-formed Unicode, so that a later response returns it unchanged. */
const Text = (charsMax: number) =>
  z
    .string()
    .max(charsMax)
    .refine((text) => text.isWellFormed(), { error: "Expected well-formed Unicode" });
const Description = Text(REPO_DESCRIPTION_CHARS_MAX).nullable();

export const CreateNamespace = z
  .strictObject({
    namespace: NamespaceName,
    jurisdiction: z
      .literal("unrestricted", {
        error: 'Expected "unrestricted": this installation has one location',
      })
      .optional(),
  })
  .meta({ examples: [{ namespace: "examples" }] });
export type CreateNamespace = z.output<typeof CreateNamespace>;

export const CreateRepo = z
  .strictObject({
    name: RepoName,
    description: Description.optional(),
    default_branch: BranchName.optional().describe(
      "main by default. The first branch pushed to an empty repository replaces it",
    ),
    read_only: z.boolean().optional().describe("Refuses every push while it is true"),
  })
  .meta({ examples: [{ name: "first", description: "What agents have written" }] });
export type CreateRepo = z.output<typeof CreateRepo>;

export const ChangeRepo = z
  .strictObject({
    description: Description.optional(),
    default_branch: BranchName.optional().describe(
      "A branch that exists; an empty repository takes any name",
    ),
    read_only: z.boolean().optional(),
    protected_refs: z
      .array(ProtectedRef)
      .max(PROTECTED_REFS_MAX)
      .optional()
      .describe(
        "Refs that refuse deletion and forced pushes; protected tags refuse every move. A rule may end with /*",
      ),
  })
  .refine((settings) => Object.keys(settings).length > 0, {
    error: "Expected at least one field to change",
  })
  .meta({ examples: [{ protected_refs: ["refs/heads/main"] }] });
export type ChangeRepo = z.output<typeof ChangeRepo>;

export const ForkRepo = z
  .strictObject({
    name: RepoName,
    description: Description.optional().describe("Defaults to the origin's description"),
    read_only: z.boolean().optional(),
    default_branch_only: z
      .boolean()
      .optional()
      .describe("Copies only the default branch and its history"),
  })
  .meta({ examples: [{ name: "second" }] });
export type ForkRepo = z.output<typeof ForkRepo>;

const TTL_TEXT = `ttl must be between ${REPO_TOKEN_TTL_S_MIN} and ${REPO_TOKEN_TTL_S_MAX} seconds`;
export const ImportRepo = z
  .strictObject({
    url: z
      .string()
      .max(IMPORT_URL_CHARS_MAX)
      .refine((text) => importUrlOf(text) !== undefined, { error: `url ${IMPORT_URL_RULE}` })
      .describe(`The address of a public repository. It ${IMPORT_URL_RULE}`),
    branch: BranchName.optional().describe(
      "Imports only this branch; without it, all branches and tags",
    ),
    depth: z
      .int()
      .min(1)
      .max(IMPORT_DEPTH_MAX)
      .optional()
      .describe("Number of commits to import from each line of history; without it, all of them"),
    read_only: z.boolean().optional(),
  })
  .meta({ examples: [{ url: "https://example.com/owner/repo.git" }] });
export type ImportRepo = z.output<typeof ImportRepo>;

export const MintRepoToken = z
  .strictObject({
    repo: RepoName,
    scope: RepoTokenScope.default("write"),
    ttl: z
      .int(TTL_TEXT)
      .min(REPO_TOKEN_TTL_S_MIN, TTL_TEXT)
      .max(REPO_TOKEN_TTL_S_MAX, TTL_TEXT)
      .default(REPO_TOKEN_TTL_S)
      .describe(
        "Lifetime in seconds; it is shortened to the lifetime of the caller's own API token",
      ),
  })
  .meta({ examples: [{ repo: "first", scope: "read", ttl: 3_600 }] });
export type MintRepoToken = z.output<typeof MintRepoToken>;

const Person = z.strictObject({
  name: Text(COMMIT_AUTHOR_CHARS_MAX).regex(/^[^<>\p{Cc}]*[^<>\p{Cc}\s.,:;"'][^<>\p{Cc}]*$/u, {
    error: "Expected a name without <, > and control characters",
  }),
  email: Text(COMMIT_AUTHOR_CHARS_MAX).regex(/^[^<>\p{Cc}\s]+$/u, {
    error: "Expected an e-mail address without <, > and blanks",
  }),
});

const ChangedPath = Text(PATH_BYTES_MAX).superRefine((path, context) => {
  const fault = pathFault(path);
  if (fault) context.addIssue({ code: "custom", message: fault });
});

/**
 * Returns why no file of a commit can have this path, or undefined if the path is valid. Git itself refuses names
 * that only some systems take for `.git`.
 */
function pathFault(path: string): string | undefined {
  const steps = path.split("/");
  if (steps.some((step) => step === "" || step === "." || step === "..")) {
    return "Expected a path from the root, such as docs/a.md, without a slash at either end, empty parts, . and ..";
  }
  if (steps.some((step) => step.toLowerCase() === ".git")) return "Expected no .git in it";
  if (/\p{Cc}/u.test(path)) return "Expected no control characters";
  if (steps.length > COMMIT_PATH_DEPTH_MAX) {
    return `Expected at most ${COMMIT_PATH_DEPTH_MAX} directories and names in the path`;
  }
  if (steps.some((step) => utf8.encode(step).length > COMMIT_NAME_BYTES_MAX)) {
    return `Expected at most ${COMMIT_NAME_BYTES_MAX} bytes in each directory or file name`;
  }
  if (utf8.encode(path).length > PATH_BYTES_MAX) return `Expected at most ${PATH_BYTES_MAX} bytes`;
  return undefined;
}

/**
 * Uses a regular expression without a repeated group, because a file of the largest size has 44 million characters in
 * base64.
 */
const isBase64 = (text: string) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);

/** Returns the schema of a changed file with at most `fileBytes` bytes. */
const changeOf = (fileBytes: number) =>
  z
    .strictObject({
      path: ChangedPath,
      content: z.string().optional().describe("The whole file as text"),
      base64: z
        .string()
        .refine(isBase64, { error: "Expected base64" })
        .optional()
        .describe("The whole file as bytes in base64"),
      delete: z
        .literal(true)
        .optional()
        .describe("Deletes the file, or the directory with all its files"),
      mode: z
        .enum(["100644", "100755", "120000"])
        .optional()
        .describe("Defaults to the file's current mode, or 100644 for a new file"),
    })
    .superRefine((change, context) => {
      const { content, base64, delete: gone, mode } = change;
      const given = [content, base64, gone].filter((value) => value !== undefined).length;
      if (given !== 1) {
        const message = "Expected one of content, base64 and delete";
        context.addIssue({ code: "custom", message });
      }
      if (gone && mode !== undefined) {
        context.addIssue({
          code: "custom",
          path: ["mode"],
          message: "Expected no mode with delete",
        });
      }
      if (content !== undefined && !content.isWellFormed()) {
        const message = "Expected well-formed Unicode; base64 takes any bytes";
        context.addIssue({ code: "custom", path: ["content"], message });
      }
      for (const [name, bytes] of [
        ["content", content === undefined ? 0 : utf8.encode(content).length],
        ["base64", base64 === undefined ? 0 : bytesInBase64(base64)],
      ] as const) {
        if (bytes <= fileBytes) continue;
        const message = `Expected at most ${fileBytes} bytes: ${fileTooLarge(change.path, bytes, fileBytes)}`;
        context.addIssue({ code: "custom", path: [name], message });
      }
    });

const bytesInBase64 = (text: string) => (text.length * 3) / 4 - (/=*$/.exec(text)?.[0].length ?? 0);

/** Returns the schema of a commit whose files have at most `fileBytes` bytes each. */
export const commitFilesOf = (fileBytes: number) =>
  z
    .strictObject({
      branch: BranchName.optional().describe("Defaults to the default branch"),
      expected: ObjectId.nullable()
        .optional()
        .describe(
          "The commit that the branch must be at, or null if it must not exist; otherwise 409 and no change",
        ),
      base: Ref.optional().describe(
        "The commit where a new branch starts; without it, the branch starts with an empty history",
      ),
      message: Text(COMMIT_MESSAGE_CHARS_MAX)
        .min(1)
        .refine((text) => !text.includes("\0"), { error: "Expected no NUL" }),
      author: Person.optional(),
      committer: Person.optional().describe("Defaults to the author"),
      changes: z.array(changeOf(fileBytes)).min(1).max(COMMIT_CHANGES_MAX),
      allow_empty: z
        .boolean()
        .optional()
        .describe("Commits even if the changes leave every file as it is; otherwise that is a 409"),
    })
    .meta({
      examples: [
        {
          branch: "main",
          message: "Add a greeting",
          author: { name: "An agent", email: "agent@example.com" },
          changes: [{ path: "hello.txt", content: "Hello\n" }],
        },
      ],
    });

export const CommitFiles = commitFilesOf(FILE_BYTES_MAX);
export type CommitFiles = z.output<typeof CommitFiles>;
