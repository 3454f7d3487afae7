/**
 * The visible fields of a settled page as one string in its row. As objects they took twice the memory for 100,000
 * pages.
 */
import { z } from "zod";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { RecordMetadata } from "../../../../schemas/crawl/crawl-job.ts";
import type { PageRow } from "./crawl-job-state.ts";
import { addressOf } from "./page-address.ts";

type Page = DeepReadonly<PageRow>;
export type Shown = Pick<Page, "reason" | "metadata" | "blobs">;

/**
 * The address is left out where it is the page's own. Blob names omit the prefix that all blobs of the page share.
 */
const Kept = z.object({
  reason: z.string().optional(),
  metadata: RecordMetadata.partial({ url: true }).optional(),
  blobs: z.array(z.tuple([z.string(), z.int()])).optional(),
});

interface Place {
  job: string;
  index: number;
  page: Page;
}

export function writeShown(
  { job, index, page }: Place,
  { reason, metadata, blobs }: { [Name in keyof Shown]: Shown[Name] | undefined },
): string {
  const prefix = blobPrefix(job, index);
  const { url, ...others } = metadata ?? {};
  const isElsewhere = url !== undefined && url !== addressOf(page);
  return JSON.stringify({
    ...(reason !== undefined && { reason }),
    ...(metadata && { metadata: isElsewhere ? metadata : others }),
    ...(blobs && blobs.length > 0 && { blobs: blobs.map(kept) }),
  });

  function kept({ name, bytes }: { name: string; bytes: number }): [string, number] {
    return [name.startsWith(prefix) ? name.slice(prefix.length - 1) : name, bytes];
  }
}

/** Returns the fields that clients see. A row without `shown` has them as separate fields. */
export function readShown({ job, index, page }: Place): Shown {
  if (page.shown === undefined) return page;
  const { reason, metadata, blobs } = Kept.parse(JSON.parse(page.shown));
  const prefix = blobPrefix(job, index).slice(0, -1);
  return {
    ...(reason !== undefined && { reason }),
    ...(metadata && { metadata: { ...metadata, url: metadata.url ?? addressOf(page) } }),
    ...(blobs && {
      blobs: blobs.map(([name, bytes]) => ({
        name: name.startsWith(".") ? prefix + name : name,
        bytes,
      })),
    }),
  };
}

const blobPrefix = (job: string, index: number) => `crawl.${job}.${index}.`;
