/** The message that makes an actor repeat its notifications, even without a change. */
import { z } from "zod";

/**
 * A host may die after a change is stored and before it notifies. The caller's retry then gets the stored reply. This
 * call makes a living host notify before it replies.
 */
export const tellAgain = { input: z.object({}), reply: z.object({}) };
