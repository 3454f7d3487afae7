/** Makes the store of one model of oidc-provider, and holds functions that all stores use. */
import type { Adapter, AdapterPayload } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { FailedAuthentications } from "../../account/failed-authentications.ts";

export interface StoreParts {
  actors: ActorClient;
  failed: FailedAuthentications;
  now: () => number;
  /** Limits the refreshes of an account or a person in REQUEST_WINDOW_MS; 0 means no limit. */
  requestsPerWindow: number;
}

type Found = Record<string, unknown> | undefined;

/** Fills in the methods that oidc-provider never calls for this model. */
export function store(parts: {
  find?: (id: string) => Promise<Found>;
  upsert?: (id: string, payload: AdapterPayload, expiresIn?: number) => Promise<void>;
  consume?: (id: string) => Promise<void>;
  destroy?: (id: string) => Promise<void>;
  revokeByGrantId?: (id: string) => Promise<void>;
}): Adapter {
  const none = async () => undefined;
  return {
    find: parts.find ?? none,
    findByUid: none,
    findByUserCode: none,
    upsert: parts.upsert ?? none,
    consume: parts.consume ?? none,
    destroy: parts.destroy ?? none,
    revokeByGrantId: parts.revokeByGrantId ?? none,
  };
}

export async function unlessUnknown<T>(calling: Promise<T>): Promise<T | undefined> {
  try {
    return await calling;
  } catch (error) {
    if (isUnknown(error)) return undefined;
    throw error;
  }
}

export const isUnknown = (error: unknown) =>
  error instanceof ActorError && ["not_found", "unauthenticated"].includes(error.code);

export const seconds = (ms: number) => Math.floor(ms / 1_000);
