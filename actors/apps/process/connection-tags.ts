/** Checks the tags that an agent's code gives a connection. */
import { CONNECTION_TAG_CHARS_MAX, CONNECTION_TAGS_MAX } from "../../../schemas/apps/limits.ts";

/** Returns the tags. Throws TypeError or RangeError if they are not tags. */
export function checkedTags(tags: unknown): string[] {
  if (!Array.isArray(tags))
    throw new TypeError("Cannot connect: getConnectionTags() gave no array");
  if (tags.length > CONNECTION_TAGS_MAX) {
    throw new RangeError(
      `Cannot connect: ${tags.length} tags, expected at most ${CONNECTION_TAGS_MAX}`,
    );
  }
  for (const tag of tags) {
    if (typeof tag !== "string" || tag === "" || tag.length > CONNECTION_TAG_CHARS_MAX) {
      throw new RangeError(
        `Cannot connect: a tag is a text of 1 to ${CONNECTION_TAG_CHARS_MAX} characters`,
      );
    }
  }
  return tags as string[];
}
