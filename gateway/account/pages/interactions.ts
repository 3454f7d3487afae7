/** Reads and finishes pending authorization requests for pages. */
import { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { interaction } from "../../../schemas/oauth/interaction.ts";
import { browserHashOf } from "./browser-cookies.ts";
import type { Visit } from "./visit.ts";

/** The fields of a stored authorization request that pages read. All others are preserved. */
const Waiting = z.looseObject({
  exp: z.int(),
  /** The address at which oidc-provider resumes the request. */
  returnTo: z.string(),
  prompt: z.object({ name: z.string(), reasons: z.array(z.string()) }),
  params: z.looseObject({
    client_id: z.string(),
    redirect_uri: z.string(),
    scope: z.string(),
    login_hint: z.string().optional(),
  }),
  lastSubmission: z.record(z.string(), z.unknown()).optional(),
});
export type Waiting = z.infer<typeof Waiting>;

const UID = /^[\w-]{10,64}$/;

export class Interactions {
  readonly #actors: ActorClient;

  constructor(actors: ActorClient) {
    this.#actors = actors;
  }

  /** Resolves to undefined if the request has ended, is unknown, or began in another browser. */
  async find(visit: Visit, uid: string): Promise<Waiting | undefined> {
    if (!UID.test(uid)) return undefined;
    const browserHash = browserHashOf(visit.request);
    try {
      const { record } = await this.#actors.call(interaction, uid, "get", { browserHash });
      return Waiting.parse(record);
    } catch (error) {
      if (error instanceof ActorError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  /**
   * Stores the outcome of the person's decision or sign-in. Resolves to the address at which the browser continues.
   */
  async finish(
    visit: Visit,
    uid: string,
    { waiting, result }: { waiting: Waiting; result: Record<string, unknown> },
  ): Promise<string> {
    const earlier = "error" in result ? {} : waiting.lastSubmission;
    await this.#actors.call(interaction, uid, "put", {
      browserHash: browserHashOf(visit.request),
      record: { ...waiting, result: { ...earlier, ...result } },
      expiresAt: waiting.exp * 1_000,
    });
    return waiting.returnTo;
  }
}

/** The result of a sign-in for oidc-provider, with the time of the sign-in. */
export function loginResult({
  userId,
  authenticatedAt,
}: {
  userId: string;
  authenticatedAt: number;
}) {
  return { login: { accountId: userId, ts: Math.floor(authenticatedAt / 1_000) } };
}
