/** Messages about a job as a whole. */
import { CRAWL_MESSAGES_MAX } from "../../../../schemas/crawl/limits.ts";
import type { JobDraft } from "./job-draft.ts";

/** Adds a message. The last place is reserved for the end of the job. */
export function addMessage({ state }: JobDraft, message: string): void {
  if (state.messages.includes(message) || state.messages.length >= CRAWL_MESSAGES_MAX - 1) return;
  state.messages = [...state.messages, message];
}
