import { expect } from "chai";
import type { z } from "zod";
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
  NAMESPACE_NAME_CHARS_MAX,
  NAMESPACE_NAME_CHARS_MIN,
  PATH_BYTES_MAX,
  PROTECTED_REFS_MAX,
  REF_CHARS_MAX,
  REF_LIST,
  REF_LIST_MAX,
  REF_NAME_BYTES_MAX,
  REPO_DESCRIPTION_CHARS_MAX,
  REPO_LIST,
  REPO_LIST_MAX,
  REPO_NAME_CHARS_MAX,
  REPO_TOKEN_LIST,
  REPO_TOKEN_LIST_MAX,
  REPO_TOKEN_TTL_S,
  REPO_TOKEN_TTL_S_MAX,
  REPO_TOKEN_TTL_S_MIN,
  SEARCH_CHARS_MAX,
} from "../limits.ts";
import {
  ChangeRepo,
  CommitFiles,
  CreateNamespace,
  CreateRepo,
  DiffQuery,
  FileQuery,
  ImportRepo,
  LogQuery,
  MintRepoToken,
  NamespacesQuery,
  RefsQuery,
  ReposQuery,
  RepoTokensQuery,
} from "./artifacts.ts";

const x = (count: number) => "x".repeat(count);
const branch = (bytes: number) => `b${x(bytes - 1)}`;
const url = (chars: number) => {
  const start = "https://example.com/";
  return start + x(chars - start.length);
};
const commit = (more: object) => ({
  message: "m",
  changes: [{ path: "a", content: "" }],
  ...more,
});
const change = (more: object) => commit({ changes: [{ path: "a", content: "", ...more }] });
const person = (chars: number) => ({
  author: { name: x(chars), email: "a@example.com" },
});
const steps = (count: number) => Array.from({ length: count }, () => "d").join("/");
/** Returns a path of this many bytes. None of its directory and file names is too long. */
const path = (bytes: number) => {
  const step = `${x(200)}/`;
  const whole = step.repeat(Math.floor((bytes - 1) / step.length));
  return whole + x(bytes - whole.length);
};
const REF_PREFIX_BYTES = "refs/heads/".length;

/** For each limit: the last value that is accepted, and the step to the next value, which is refused. */
const BOUNDS: [string, z.ZodType, (value: number) => unknown, number, number][] = [
  [
    "NAMESPACE_NAME_CHARS_MIN",
    CreateNamespace,
    (n) => ({ namespace: x(n) }),
    NAMESPACE_NAME_CHARS_MIN,
    -1,
  ],
  [
    "NAMESPACE_NAME_CHARS_MAX",
    CreateNamespace,
    (n) => ({ namespace: x(n) }),
    NAMESPACE_NAME_CHARS_MAX,
    1,
  ],
  ["REPO_NAME_CHARS_MAX", CreateRepo, (n) => ({ name: x(n) }), REPO_NAME_CHARS_MAX, 1],
  [
    "REPO_DESCRIPTION_CHARS_MAX",
    CreateRepo,
    (n) => ({ name: "a", description: x(n) }),
    REPO_DESCRIPTION_CHARS_MAX,
    1,
  ],
  [
    "REF_NAME_BYTES_MAX",
    CreateRepo,
    (n) => ({ name: "a", default_branch: branch(n) }),
    REF_NAME_BYTES_MAX - REF_PREFIX_BYTES,
    1,
  ],
  [
    "PROTECTED_REFS_MAX",
    ChangeRepo,
    (n) => ({ protected_refs: Array(n).fill("refs/heads/a") }),
    PROTECTED_REFS_MAX,
    1,
  ],
  ["REPO_TOKEN_TTL_S_MIN", MintRepoToken, (ttl) => ({ repo: "a", ttl }), REPO_TOKEN_TTL_S_MIN, -1],
  ["REPO_TOKEN_TTL_S_MAX", MintRepoToken, (ttl) => ({ repo: "a", ttl }), REPO_TOKEN_TTL_S_MAX, 1],
  ["IMPORT_URL_CHARS_MAX", ImportRepo, (n) => ({ url: url(n) }), IMPORT_URL_CHARS_MAX, 1],
  ["IMPORT_DEPTH_MAX", ImportRepo, (depth) => ({ url: url(30), depth }), IMPORT_DEPTH_MAX, 1],
  ["the least depth", ImportRepo, (depth) => ({ url: url(30), depth }), 1, -1],
  ["NAMESPACE_LIST_MAX", NamespacesQuery, (limit) => ({ limit }), NAMESPACE_LIST_MAX, 1],
  ["the least limit", NamespacesQuery, (limit) => ({ limit }), 1, -1],
  ["CURSOR_CHARS_MAX", NamespacesQuery, (n) => ({ cursor: x(n) }), CURSOR_CHARS_MAX, 1],
  ["REPO_LIST_MAX", ReposQuery, (limit) => ({ limit }), REPO_LIST_MAX, 1],
  ["SEARCH_CHARS_MAX", ReposQuery, (n) => ({ search: x(n) }), SEARCH_CHARS_MAX, 1],
  ["LOG_OFFSET_MAX", LogQuery, (offset) => ({ offset }), LOG_OFFSET_MAX, 1],
  ["the least log", LogQuery, (limit) => ({ limit }), 1, -1],
  ["REF_CHARS_MAX", LogQuery, (n) => ({ ref: x(n) }), REF_CHARS_MAX, 1],
  ["REF_CHARS_MAX of a base", DiffQuery, (n) => ({ base: x(n), head: "a" }), REF_CHARS_MAX, 1],
  ["REF_CHARS_MAX of a prefix", RefsQuery, (n) => ({ prefix: x(n) }), REF_CHARS_MAX, 1],
  ["REF_LIST_MAX", RefsQuery, (limit) => ({ limit }), REF_LIST_MAX, 1],
  [
    "PATH_BYTES_MAX of a file",
    FileQuery,
    (n) => ({ ref: "a", path: `${x(n - 2)}ä` }),
    PATH_BYTES_MAX,
    1,
  ],
  ["REPO_TOKEN_LIST_MAX", RepoTokensQuery, (per_page) => ({ per_page }), REPO_TOKEN_LIST_MAX, 1],
  [
    "COMMIT_MESSAGE_CHARS_MAX",
    CommitFiles,
    (n) => commit({ message: x(n) }),
    COMMIT_MESSAGE_CHARS_MAX,
    1,
  ],
  ["COMMIT_AUTHOR_CHARS_MAX", CommitFiles, (n) => commit(person(n)), COMMIT_AUTHOR_CHARS_MAX, 1],
  [
    "COMMIT_CHANGES_MAX",
    CommitFiles,
    (n) =>
      commit({ changes: Array.from({ length: n }, (_, i) => ({ path: `${i}`, content: "" })) }),
    COMMIT_CHANGES_MAX,
    1,
  ],
  [
    "COMMIT_PATH_DEPTH_MAX",
    CommitFiles,
    (n) => change({ path: steps(n) }),
    COMMIT_PATH_DEPTH_MAX,
    1,
  ],
  [
    "COMMIT_NAME_BYTES_MAX",
    CommitFiles,
    (n) => change({ path: `d/${x(n - 2)}ä` }),
    COMMIT_NAME_BYTES_MAX,
    1,
  ],
  ["PATH_BYTES_MAX of a commit", CommitFiles, (n) => change({ path: path(n) }), PATH_BYTES_MAX, 1],
  ["FILE_BYTES_MAX", CommitFiles, (n) => change({ content: x(n) }), FILE_BYTES_MAX, 1],
];

describe("limits of requests about repositories", () => {
  for (const [name, schema, make, bound, step] of BOUNDS) {
    it(`${name} is accepted, and nothing past it`, () => {
      expect(schema.safeParse(make(bound)).success, `${bound}`).to.equal(true);
      expect(schema.safeParse(make(bound + step)).success, `${bound + step}`).to.equal(false);
    });
  }

  it("defaults are those of the public API", () => {
    expect(NamespacesQuery.parse({}).limit).to.equal(NAMESPACE_LIST);
    expect(ReposQuery.parse({}).limit).to.equal(REPO_LIST);
    expect(RefsQuery.parse({}).limit).to.equal(REF_LIST);
    expect(RepoTokensQuery.parse({}).per_page).to.equal(REPO_TOKEN_LIST);
    expect(LogQuery.parse({}).limit).to.equal(LOG_ENTRIES);
    expect(LogQuery.parse({ limit: LOG_ENTRIES_MAX + 1 }).limit).to.equal(LOG_ENTRIES_MAX);
    expect(MintRepoToken.parse({ repo: "a" }).ttl).to.equal(REPO_TOKEN_TTL_S);
  });
});
