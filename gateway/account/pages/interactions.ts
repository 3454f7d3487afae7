/** Authorization requests that wait for a person, as our pages see them. */
import { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { interaction } from "../../../schemas/oauth/interaction.ts";
import { browserHashOf } from "./browser-cookies.ts";
import type { Visit } from "./visit.ts";

/** What the library keeps, as far as pages need it; all of it is kept on. */
const Waiting = z.looseObject({
  exp: z.int(),
  /** Where the library goes on. */
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

  /** Undefined when it is over, unknown, or began in another browser. */
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

  /** Says what became of it. Resolves to where the browser goes on. */
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

/** What the library is told of a sign-in: as it was, not as it is now. */
export function loginResult({
  userId,
  authenticatedAt,
}: {
  userId: string;
  authenticatedAt: number;
}) {
  return { login: { accountId: userId, ts: Math.floor(authenticatedAt / 1_000) } };
}
