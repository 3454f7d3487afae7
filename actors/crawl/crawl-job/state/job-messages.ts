/** Messages about a job as a whole. */
import type { JobDraft } from "./job-draft.ts";

/** Messages about a job as a whole. */
export const CRAWL_MESSAGES_MAX = 20;

/** Adds a message. The last place is reserved for the end of the job. */
export function addMessage({ state }: JobDraft, message: string): void {
  if (state.messages.includes(message) || state.messages.length >= CRAWL_MESSAGES_MAX - 1) return;
  state.messages = [...state.messages, message];
}
