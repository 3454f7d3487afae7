/** What is told of a job as a whole. */
import { CRAWL_MESSAGES_MAX } from "../../../../schemas/crawl/limits.ts";
import type { JobDraft } from "./job-draft.ts";

/** The last place is kept for how the job ends. */
export function addMessage({ state }: JobDraft, message: string): void {
  if (state.messages.includes(message) || state.messages.length >= CRAWL_MESSAGES_MAX - 1) return;
  state.messages = [...state.messages, message];
}
