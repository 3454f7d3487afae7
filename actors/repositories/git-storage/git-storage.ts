/**
 * Counts the bytes that an account stores in repositories, and its imports. Refuses uploads and imports past the
 * account's limits.
 */

import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { RepoId } from "../../../schemas/repositories/git-names.ts";
import {
  accountFull,
  type GitStored,
  gitStorage,
} from "../../../schemas/repositories/git-storage.ts";
import {
  GIT_PROCESS_MS_MAX,
  IMPORTS_PER_ACCOUNT_MAX,
} from "../../../schemas/repositories/limits.ts";
import { EpochMs, Id } from "../../../schemas/values.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";

/**
 * Limit for the uploads of one account (packs and large files) that are in flight at the same time. About a dozen
 * gateways together can reach it.
 */
export const GIT_HELD_MAX = 256;
/**
 * A reservation expires after this time. No upload takes longer, so the process that made an older reservation has
 * died.
 */
export const GIT_HELD_MS = 2 * GIT_PROCESS_MS_MAX;
/**
 * An import whose end was not reported stops counting after this time. Imports may wait for many hours, so a
 * shorter time would free the places of imports that still wait.
 */
export const IMPORT_HELD_MS = 24 * 60 * 60_000;

const GitStorageState = z.object({
  bytes: z.int().min(0),
  /**
   * The space reserved for uploads in flight. The uploading process may die, so each reservation expires at `until`.
   */
  held: z.array(z.object({ id: Id, bytes: z.int().min(0), until: EpochMs })),
  /** The imports that run or wait, by the ids of their repositories. A lost import stops counting at `until`. */
  imports: z.array(z.object({ id: RepoId, until: EpochMs })).optional(),
});
type State = DeepReadonly<z.infer<typeof GitStorageState>>;

/**
 * Stored at: account id
 *
 * State: `{ bytes, held: [{ id, bytes, until }], imports?: [{ id, until }] }`: bytes of the account's packs, with
 * their indexes, and large files in `PACKS`, each once; what is being stored has room held for it for an hour at most;
 * `imports`: the repositories whose import runs or waits, each for a day at most
 */
export const gitStorageActor = defineActor(gitStorage, {
  state: GitStorageState,
  initial: { bytes: 0, held: [] },

  handlers: {
    hold(state, { id, bytes, bytesMax }, { now }) {
      const held = state.held.filter((other) => other.until > now && other.id !== id);
      const before = storedOf({ ...state, held });
      if (bytesMax > 0 && before.bytes + before.heldBytes + bytes > bytesMax) {
        throw accountFull(before, bytesMax);
      }
      if (held.length >= GIT_HELD_MAX) {
        const text = `Cannot store: ${GIT_HELD_MAX} large things of the account are being stored`;
        throw new ActorError("busy", text, { retryAfterS: 5 });
      }
      const next = { ...state, held: [...held, { id, bytes, until: now + GIT_HELD_MS }] };
      return { state: next, reply: storedOf(next) };
    },

    settle(state, { id, bytes, stored }) {
      const held = state.held.filter((other) => other.id !== id);
      return { state: { ...state, bytes: state.bytes + (stored ? bytes : 0), held } };
    },

    add(state, { bytes }) {
      const next = { ...state, bytes: state.bytes + bytes };
      return { state: next, reply: storedOf(next) };
    },

    // The sweep may report more removed bytes than were counted, because a gateway may die before it reports what it
    // stored. The counter must not become negative.
    removed: (state, { bytes }) => ({
      state: { ...state, bytes: Math.max(0, state.bytes - bytes) },
    }),

    get(state, _input, { now }) {
      const held = state.held.filter(({ until }) => until > now);
      return { state, reply: storedOf({ ...state, held }) };
    },

    holdImport(state, { id }, { now }) {
      const { imports = [] } = state;
      const others = imports.filter((other) => other.until > now && other.id !== id);
      if (others.length >= IMPORTS_PER_ACCOUNT_MAX) {
        const text = `${IMPORTS_PER_ACCOUNT_MAX} imports of the account run or wait, which is the limit`;
        throw new ActorError(
          "limit_reached",
          `Cannot import: ${text}; try again when one has ended`,
        );
      }
      const held = { id, until: now + IMPORT_HELD_MS };
      return { state: { ...state, imports: [...others, held] }, reply: {} };
    },

    importEnded(state, { id }) {
      // A task may report its end twice.
      if (!state.imports?.some((other) => other.id === id)) return { state };
      return { state: { ...state, imports: state.imports.filter((other) => other.id !== id) } };
    },
  },
});

const storedOf = ({ bytes, held }: State): GitStored => ({
  bytes,
  heldBytes: held.reduce((sum, other) => sum + other.bytes, 0),
});
