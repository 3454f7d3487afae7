/** The message that has an actor tell those who watch it once more, whether or not something has changed. */
import { z } from "zod";

/**
 * A host may die once a change is stored and before it is told of: the caller is then answered from what was stored. Whoever
 * asks for this after a change has it told by a host that lives, and before they are answered.
 */
export const tellAgain = { input: z.object({}), reply: z.object({}) };
