/** Answers app code that asks to whom a received token belongs: see schemas/apps/app-token.ts. */
import type { Logger } from "pino";
import type { AnswerOn } from "../../actors/runtime/bus/answer.ts";
import { APP_REST_QUEUE } from "../../schemas/apps/app-rest.ts";
import {
  APP_TOKEN_SUBJECT,
  type AppTokenAnswer,
  AppTokenRequest,
  type TokenIdentity,
} from "../../schemas/apps/app-token.ts";
import { ActorError } from "../../schemas/errors.ts";
import type { Tokens } from "../account/found-token.ts";
import type { Caller } from "../http/locals.ts";

interface AppTokensParts {
  tokens: Tokens;
  answerOn: AnswerOn;
  logger: Logger;
}

/** Returns a function that ends the subscription. */
export function answerAppTokens({ tokens, answerOn, logger }: AppTokensParts): () => void {
  return answerOn(APP_TOKEN_SUBJECT, answer, { queue: APP_REST_QUEUE });

  async function answer(payload: string): Promise<string> {
    return JSON.stringify(await identify(AppTokenRequest.parse(JSON.parse(payload))));
  }

  async function identify({ accountId, token }: AppTokenRequest): Promise<AppTokenAnswer> {
    const found = tokens.read(token, accountId);
    if (!found) return { isUnknown: true };
    try {
      return { identity: identityOf(await found.find(), accountId) };
    } catch (error) {
      if (error instanceof ActorError && error.code === "unauthenticated") {
        return { isUnknown: true };
      }
      if (!(error instanceof ActorError)) logger.error({ err: error }, "token lookup failed");
      return { isUnavailable: true };
    }
  }
}

function identityOf(caller: Caller, askedId: string): TokenIdentity {
  const { scopes, userId, clientId, expiresAt, permissions, accountId } = caller;
  return {
    kind: scopes ? "oauth" : "api",
    id: caller.tokenId,
    ...(userId !== undefined && { userId }),
    ...(clientId !== undefined && { clientId }),
    accountIds: [...(caller.accountIds ?? [accountId])],
    scopes: [...(scopes ?? permissions)],
    permissions: accountId === askedId ? [...permissions] : [],
    ...(expiresAt !== undefined && { expiresAt }),
  };
}
