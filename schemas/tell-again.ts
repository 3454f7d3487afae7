/** The message that makes an actor repeat its notifications, even without a change. */
import { z } from "zod";

/**
 * Makes the actor notify its subscribers before it replies. This is needed if a host stored a change and died before
 * it notified: the retried call only gets the stored reply.
 */
export const tellAgain = { input: z.object({}), reply: z.object({}) };
