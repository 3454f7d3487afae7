/**
 * Messages to read a response that an app is still writing. The reader requests one part after the other from the
 * host of the app's process. A slow reader makes the app wait. A reader that stops notifies the host.
 */
import { z } from "zod";
import { InlineBody } from "./app-exchange.ts";

/** A repeated request returns the same part, because the first request or reply may have been lost. */
export const StreamQuestion = z.object({
  stream: z.string(),
  /** Number of the requested part, from 1. */
  part: z.int().min(1),
  /** The reader has left. */
  isLeft: z.literal(true).optional(),
});
export type StreamQuestion = z.infer<typeof StreamQuestion>;

export const StreamAnswer = z.union([
  z.object({ part: InlineBody }),
  /** The app has not written the part yet, so the reader must request it again. */
  z.object({ wait: z.literal(true) }),
  z.object({ end: z.literal(true) }),
  /** The stream broke off before its end. */
  z.object({ failed: z.string() }),
]);
export type StreamAnswer = z.infer<typeof StreamAnswer>;

/** Core subject on which a host answers for the streams of its processes. */
export const streamsSubject = (host: string) => `streams.${host}`;
