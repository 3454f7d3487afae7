/** The size limits of repositories: those that an operator sets, and those that follow from them. */
import {
  COMMIT_BODY_BYTES_MAX,
  FILE_BYTES_MAX,
  GIT_BYTES_PER_ACCOUNT,
  INFLATED_FACTOR,
  REPO_BYTES_MAX,
} from "./limits.ts";

export interface GitSizes {
  /** Bytes of one file, and of any other object. */
  readonly fileBytes: number;
  /** Bytes of one repository: packed, with its large files. */
  readonly repoBytes: number;
  /** Bytes of all packs and indexes of an account; 0 is no limit. */
  readonly accountBytes: number;
}

export const GIT_SIZES: GitSizes = {
  fileBytes: FILE_BYTES_MAX,
  repoBytes: REPO_BYTES_MAX,
  accountBytes: GIT_BYTES_PER_ACCOUNT,
};

/** Bytes of one large file: half of a repository's limit. */
export const lfsObjectBytes = ({ repoBytes }: GitSizes) => Math.floor(repoBytes / 2);

/** Returns the limit for the decompressed objects of one push. */
export const inflatedBytes = ({ repoBytes }: Pick<GitSizes, "repoBytes">) =>
  INFLATED_FACTOR * repoBytes;

/** The body of a commit by REST: a file of the largest size in base64, and the rest. */
export const commitBodyBytes = ({ fileBytes }: GitSizes) =>
  Math.max(COMMIT_BODY_BYTES_MAX, Math.ceil(1.5 * fileBytes));

/** The settings of the sizes, which messages name for the operator. */
export const GIT_SIZE_SETTINGS = {
  fileBytes: "TRUNKLINE_GIT_FILE_BYTES",
  repoBytes: "TRUNKLINE_GIT_REPO_BYTES",
  accountBytes: "TRUNKLINE_GIT_BYTES_PER_ACCOUNT",
} as const satisfies Record<keyof GitSizes, string>;

/** Returns the error text for a file past the limit, with the way to store it as a large file. */
export const fileTooLarge = (path: string, bytes: number, bytesMax: number) =>
  `the file "${path}" has ${bytes} bytes, more than ${bytesMax} (${GIT_SIZE_SETTINGS.fileBytes}); Git LFS stores larger files: git lfs migrate import --include="${path}"`;

/** Returns the error text for a repository past the limit. */
export const repoTooLarge = (bytes: number, bytesMax: number) =>
  `the repository would be too large: it has ${bytes} bytes and may have ${bytesMax} (${GIT_SIZE_SETTINGS.repoBytes})`;
