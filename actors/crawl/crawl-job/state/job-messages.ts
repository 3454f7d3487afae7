/** Messages about a job as a whole. */
import type { JobDraft } from "./job-draft.ts";

/** Messages about a job as a whole. */
export const CRAWL_MESSAGES_MAX = 20;

/**
 * Adds a message to those that users see with the job. The last place is reserved for the message that the end of the
 * job adds.
 */
export function addMessage({ state }: JobDraft, message: string): void {
  if (state.messages.includes(message) || state.messages.length >= CRAWL_MESSAGES_MAX - 1) return;
  state.messages = [...state.messages, message];
}
