/** The message that has an actor tell those who watch it once more, whether or not something has changed. */
import { z } from "zod";

/**
 * A host may die after a change is stored and before it notifies. The caller's retry then gets the stored reply. This
 * call makes a living host notify before it replies.
 */
export const tellAgain = { input: z.object({}), reply: z.object({}) };
