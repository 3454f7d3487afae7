/** Decides which failures of actors a client may retry. Apart from oauth-errors.ts, which loads oidc-provider. */
import { ActorError } from "../../../schemas/errors.ts";

const TEMPORARY = new Set(["unavailable", "busy", "deadline_exceeded"]);

export const isTemporary = (error: unknown) =>
  error instanceof ActorError && TEMPORARY.has(error.code);
