/** The size limits of repositories: those that an operator sets, and those that are computed from them. */
import {
  COMMIT_BODY_BYTES_MAX,
  FILE_BYTES_MAX,
  GIT_BYTES_PER_ACCOUNT,
  INFLATED_FACTOR,
  REPO_BYTES_MAX,
} from "./limits.ts";

export interface GitSizes {
  /** Limit for the bytes of one file, and of any other Git object. */
  readonly fileBytes: number;
  /** Limit for the bytes of one repository: its packs and its large files. */
  readonly repoBytes: number;
  /** Limit for the bytes of all packs, indexes and large files of an account; 0 means no limit. */
  readonly accountBytes: number;
}

export const GIT_SIZES: GitSizes = {
  fileBytes: FILE_BYTES_MAX,
  repoBytes: REPO_BYTES_MAX,
  accountBytes: GIT_BYTES_PER_ACCOUNT,
};

/** Returns the limit for the bytes of one large file: half of the repository's limit. */
export const lfsObjectBytes = ({ repoBytes }: GitSizes) => Math.floor(repoBytes / 2);

/** Returns the limit for the decompressed objects of one push. */
export const inflatedBytes = ({ repoBytes }: Pick<GitSizes, "repoBytes">) =>
  INFLATED_FACTOR * repoBytes;

/** Returns the limit for the body of a commit by REST: a file of the largest size in base64, and the other fields. */
export const commitBodyBytes = ({ fileBytes }: GitSizes) =>
  Math.max(COMMIT_BODY_BYTES_MAX, Math.ceil(1.5 * fileBytes));

/** The settings of the size limits. Error messages name them for the operator. */
export const GIT_SIZE_SETTINGS = {
  fileBytes: "TRUNKLINE_GIT_FILE_BYTES",
  repoBytes: "TRUNKLINE_GIT_REPO_BYTES",
  accountBytes: "TRUNKLINE_GIT_BYTES_PER_ACCOUNT",
} as const satisfies Record<keyof GitSizes, string>;

/** Returns the error text for a file past the limit. The text shows how to store the file with Git LFS. */
export const fileTooLarge = (path: string, bytes: number, bytesMax: number) =>
  `the file "${path}" has ${bytes} bytes, more than ${bytesMax} (${GIT_SIZE_SETTINGS.fileBytes}); Git LFS stores larger files: git lfs migrate import --include="${path}"`;

/** Returns the error text for a repository past the limit. */
export const repoTooLarge = (bytes: number, bytesMax: number) =>
  `the repository would be too large: it has ${bytes} bytes and may have ${bytesMax} (${GIT_SIZE_SETTINGS.repoBytes})`;
