/** Names of namespaces, repositories and refs, and the rules that make a name valid. */
import { z } from "zod";
import {
  NAMESPACE_NAME_CHARS_MAX,
  NAMESPACE_NAME_CHARS_MIN,
  REF_DEPTH_MAX,
  REF_NAME_BYTES_MAX,
  REPO_NAME_CHARS_MAX,
} from "./limits.ts";

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;
const utf8 = new TextEncoder();

export const NamespaceName = z
  .string()
  .min(NAMESPACE_NAME_CHARS_MIN)
  .max(NAMESPACE_NAME_CHARS_MAX)
  .regex(NAME, `Invalid namespace name: must match ${NAME}`);

/** A name must not end with `.git`. Clients remove this ending, so they would take `x.git` for `x`. */
export const RepoName = z
  .string()
  .max(REPO_NAME_CHARS_MAX)
  .regex(NAME, `Invalid repo name: must match ${NAME}`)
  .refine((name) => !/\.git$/i.test(name), "Invalid repo name: must not end with .git");

/** Two names that differ only in upper and lower case are the same name. */
export const folded = (name: string) => name.toLowerCase();

/** Returns the key of a namespace's actor. */
export const namespaceKey = (accountId: string, namespace: string) =>
  `${accountId}.${folded(namespace)}`;

/** The id of a repository: random, in the format of the public API. */
export const RepoId = z
  .string()
  .regex(/^[0-9a-z]{16}$/, "Expected 16 digits or lower-case letters");

/** A SHA-1, in hex. */
export const ObjectId = z.string().regex(/^[0-9a-f]{40}$/, "Expected 40 lower-case hex characters");

/** The old value of a new ref in a push, and the new value of a deleted one. */
export const ZERO_ID = "0".repeat(40);

/**
 * Refs that no client may change. A ref below `replace` would replace an object for all readers. `bisect`,
 * `rewritten` and `worktree` belong to one working copy of git. `internal` is reserved for this server.
 */
const HIDDEN_REFS = ["replace", "bisect", "rewritten", "worktree", "internal"];
const ALLOWED_REFS = `allowed is refs/<name>/<more>, except below ${HIDDEN_REFS.map((name) => `refs/${name}/`).join(", ")}`;

/**
 * Returns why a ref cannot have this name, or undefined if the name is valid. The rules are those of `git
 * check-ref-format`, and the name must be below a directory that clients may change.
 */
export function refNameFault(name: string): string | undefined {
  const [, area] = /^refs\/([^/]+)\/./.exec(name) ?? [];
  if (area === undefined || HIDDEN_REFS.includes(area)) return ALLOWED_REFS;
  if (!name.isWellFormed() || utf8.encode(name).length > REF_NAME_BYTES_MAX) {
    return `a ref's name is UTF-8 of at most ${REF_NAME_BYTES_MAX} bytes`;
  }
  const components = name.split("/");
  if (components.length > REF_DEPTH_MAX) {
    return `a ref's name has at most ${REF_DEPTH_MAX} components`;
  }
  // Rules 1 to 10 of git-check-ref-format(1). U+FFFD is refused because the decoder puts it in place of invalid
  // UTF-8.
  const bad =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are among what is refused.
    /[\u0000-\u0020\u007f~^:?*[\\\ufffd]|\.\.|@\{|\.$/.test(name) ||
    components.some(
      (component) => component === "" || component.startsWith(".") || component.endsWith(".lock"),
    );
  return bad ? "git check-ref-format does not allow it" : undefined;
}

export const BranchName = z
  .string()
  .min(1)
  .refine((name) => refNameFault(`refs/heads/${name}`) === undefined && !name.startsWith("-"), {
    error: "Invalid branch name",
  });

/** A whole ref, such as `refs/heads/main`, or all refs below a directory, such as `refs/heads/release/*`. */
export const ProtectedRef = z
  .string()
  .max(REF_NAME_BYTES_MAX)
  .refine(
    (rule) => refNameFault(rule.endsWith("/*") ? `${rule.slice(0, -1)}x` : rule) === undefined,
    "Expected a ref such as refs/heads/main or refs/heads/release/*",
  );

/**
 * Returns whether the ref is a tag. A protected tag may not move, because people expect a tag to name one object forever.
 */
export const isTag = (ref: string) => ref.startsWith("refs/tags/");

export const isProtected = (rules: readonly string[], ref: string) =>
  rules.some((rule) => (rule.endsWith("/*") ? ref.startsWith(rule.slice(0, -1)) : ref === rule));
