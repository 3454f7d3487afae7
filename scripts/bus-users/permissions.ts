/** Reads the permissions of the bus's users to publish and subscribe from deploy/bus-permissions. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { STATE_STREAMS_MAX } from "../../schemas/limits.ts";
import { ofEachStream } from "../../schemas/split-streams.ts";
import { stateBucket } from "../../schemas/subjects.ts";
import { REPOSITORY } from "../tools.ts";
import type { BusUserName } from "./users.ts";

export const PERMISSIONS_FOLDER = "deploy/bus-permissions";

/** Subjects of the bus. A token may be `*`, and the last token may be `>`. */
const Subjects = z.array(z.string().regex(/^\S+$/));

const Permissions = z.strictObject({
  publish: z.strictObject({ allow: Subjects, deny: Subjects.default([]) }),
  subscribe: z.strictObject({ allow: Subjects }),
  /** True if the user may answer each received request once, on any reply subject. */
  answers: z.boolean().default(false),
});
export type Permissions = z.infer<typeof Permissions>;

/**
 * Reads the permissions of a user. Throws if the file is missing or has unknown fields. A permission for the first
 * stream of a store is extended to all streams that the store may have.
 */
export function readPermissions(name: BusUserName): Permissions {
  const path = join(REPOSITORY, PERMISSIONS_FOLDER, `${name}.yaml`);
  const { publish, ...others } = Permissions.parse(parse(readFileSync(path, "utf8")));
  const [allow, deny] = [publish.allow, publish.deny].map((subjects) =>
    subjects.flatMap(ofEachStateStream).flatMap(ofEachStream),
  );
  return { ...others, publish: { allow: allow ?? [], deny: deny ?? [] } };
}

function ofEachStateStream(subject: string): string[] {
  const first = stateBucket(0);
  if (!subject.includes(first)) return [subject];
  const indexes = Array.from({ length: STATE_STREAMS_MAX }, (_, index) => index);
  return indexes.map((index) => subject.replaceAll(first, stateBucket(index)));
}
