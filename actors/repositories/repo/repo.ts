/** Keeps a repository: its settings, refs, packs and tokens. Decides every push. */

import { envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { checkComplete } from "../../../schemas/repositories/check-complete.ts";
import { namespaceKey } from "../../../schemas/repositories/git-names.ts";
import {
  CLEAR_PAUSE_MS,
  CLEARED_ROWS,
  REPO_REMOVED_MS,
  STAGED_MS,
  STAGED_PUSHES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { namespace, RepoListing } from "../../../schemas/repositories/namespace.ts";
import { packRow, type RepoEntry, repo } from "../../../schemas/repositories/repo.ts";
import { repoImport } from "../../../schemas/repositories/repo-import.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { adoptedBranch, checkDefaultBranch } from "./default-branch.ts";
import { deeperSince, fill } from "./fill-repo.ts";
import { judgePush } from "./judge-push.ts";
import { liveAt } from "./live-at.ts";
import { readManifest } from "./read-manifest.ts";
import { endFailedCreation, removed } from "./remove-repo.ts";
import { arrival, event, pushed } from "./repo-event-messages.ts";
import { findLfsObjects, listLfsObjects, nameLfsObjects } from "./repo-lfs.ts";
import { createLock, listLocks, removeLock } from "./repo-locks.ts";
import { type LiveRepo, partRow, RepoRow, RepoState } from "./repo-state.ts";
import { listTokens, mintToken, revokeToken, verifyToken } from "./repo-tokens.ts";
import {
  afterRefusal,
  beginUpkeep,
  checkHeld,
  compact,
  continueUpkeep,
  endUpkeep,
  makeRoom,
  packRows,
  requestPrune,
} from "./repo-upkeep.ts";
import { droppedParts, stagedCommands, type WrittenRows } from "./staged-pushes.ts";

/** A fork that is not complete after this time has failed, because its gateway has died. */
export const FORK_MS_MAX = 10 * 60_000;

export const repoActor = defineActor(repo, {
  state: RepoState,
  initial: { life: "none" },
  rows: RepoRow,

  handlers: {
    create(state, { token, content, origin, ...input }, { key, now, newId, rows }) {
      if (state.life === "removed") {
        const text = "Cannot create repository: it was deleted meanwhile, or it took too long";
        throw new ActorError("conflict", text);
      }
      if (state.life === "live") {
        throw new ActorError("conflict", "Cannot create repository: its id is taken");
      }
      const live: LiveRepo = {
        life: "live",
        ...input,
        failure: null,
        createdAt: now,
        updatedAt: now,
        lastPushAt: null,
        seed: newId(),
        version: 1,
        generation: 0,
        packsRemovedVersion: 0,
        refs: 0,
        refNamesBytes: 0,
        packs: 0,
        packsBytes: 0,
        treeDepth: 0,
        lfsObjects: 0,
        lfsBytes: 0,
        staged: [],
        ...(origin && { importedBranch: origin.branch }),
      };
      if (content) checkHeld(content.packs);
      const { filled, written } = content ? fill(live, content) : { filled: live };
      const source = content && live.source;
      const { accountId, namespace: space, name } = live;
      const address = { accountId, namespace: space, name };
      const change = source ? { type: "forked" as const, source } : { type: "created" as const };
      return {
        state: filled,
        rows: { ...(token && mintToken(rows, token, now).written), ...written },
        reply: entryOf(filled, key),
        send: [
          toldNamespace(filled, key),
          event(filled, key, now, change),
          ...(origin ? [envelope(repoImport, key, "fetch", { ...origin, address })] : []),
        ],
        ...(live.status === "forking" && { remind: { giveUp: now + FORK_MS_MAX } }),
      };
    },

    get(state, address, { key }) {
      const live = liveAt(state, address);
      return { state, reply: entryOf(live, key) };
    },

    configure(state, { byClient, ...settings }, { key, now, rows }) {
      const live = liveAt(state);
      const isOfContent = settings.defaultBranch !== undefined || settings.readOnly !== undefined;
      if (byClient && isOfContent) {
        checkComplete(live.status, "Cannot change default_branch or read_only");
      }
      const {
        description = live.description,
        defaultBranch = live.defaultBranch,
        readOnly = live.readOnly,
        protectedRefs = live.protectedRefs,
      } = settings;
      checkDefaultBranch(live, rows, defaultBranch);
      const changed: LiveRepo = {
        ...live,
        description,
        defaultBranch,
        readOnly,
        protectedRefs,
        updatedAt: now,
        version: live.version + 1,
      };
      return {
        state: changed,
        reply: entryOf(changed, key),
        send: [toldNamespace(changed, key)],
      };
    },

    setStatus(state, status, { key, now }) {
      const live = liveAt(state);
      const changed = { ...live, ...status, updatedAt: now, version: live.version + 1 };
      return {
        state: changed,
        reply: entryOf(changed, key),
        send: [toldNamespace(changed, key), ...arrival(live, changed, key, now)],
      };
    },

    importShallow(state, { commits }) {
      const live = liveAt(state);
      if (live.status !== "importing") {
        throw new ActorError(
          "conflict",
          "Cannot end history: the repository is not being imported",
        );
      }
      return { state: { ...live, shallow: commits, version: live.version + 1 }, reply: {} };
    },

    importLacks(state, { lacking }) {
      if (state.life !== "live" || state.status !== "importing") return { state, reply: {} };
      return { state: { ...state, failure: lacking }, reply: {} };
    },

    importProgressed(state, progress) {
      // The report may arrive late.
      if (state.life !== "live" || state.status !== "importing") return { state };
      return { state: { ...state, progress } };
    },

    importEnded(state, { failure, lacking = null, readOnly }, { key, now }) {
      // A task may report its end twice.
      if (state.life !== "live" || state.status !== "importing") return { state };
      const status = failure === null ? ("ready" as const) : ("failed" as const);
      const { progress: _, ...rest } = state;
      const version = state.version + 1;
      const about = { status, failure: failure ?? lacking, readOnly };
      const ended = { ...rest, ...about, updatedAt: now, version };
      return {
        state: ended,
        send: [toldNamespace(ended, key), ...arrival(state, ended, key, now)],
      };
    },

    giveUp(state, _input, { key, now }) {
      if (state.life !== "live" || state.status !== "forking") return { state };
      const failure = "It was interrupted; delete it and fork again";
      const version = state.version + 1;
      const failed = { ...state, status: "failed" as const, failure, updatedAt: now, version };
      return { state: failed, send: [toldNamespace(failed, key)] };
    },

    remove(state, _input, { key, now }) {
      return state.life === "removed"
        ? { state, reply: {} }
        : { ...removed(state, key, now), reply: {} };
    },

    refuseCreation(state, _input, { key, now }) {
      if (state.life === "live") {
        throw new ActorError("conflict", "Cannot refuse creation: the repository exists");
      }
      return state.life === "removed"
        ? { state, reply: {} }
        : { ...removed(state, key, now), reply: {} };
    },

    creationFailed(state, address, { rows, ...context }) {
      return endFailedCreation(state, rows, address, context);
    },

    nameReleased(state, _input, { key, now }) {
      return state.life === "removed" ? { state } : removed(state, key, now);
    },

    manifest(state, { address, after, packsAfter }, { rows }) {
      const live = liveAt(state, address);
      return { state, reply: readManifest(live, rows, { after, packsAfter }) };
    },

    stage(state, { push, part, commands }, { now }) {
      const live = liveAt(state);
      const known = live.staged.find((staged) => staged.push === push);
      if (!known && live.staged.length >= STAGED_PUSHES_MAX) {
        const text = `Cannot push: ${STAGED_PUSHES_MAX} large pushes are under way`;
        throw new ActorError("busy", text, { retryAfterS: 5 });
      }
      const parts = [...(known?.parts ?? []).filter((other) => other !== part), part];
      const others = live.staged.filter((staged) => staged !== known);
      const rows: WrittenRows = { [partRow(push, part)]: { row: "part", commands } };
      return {
        state: { ...live, staged: [...others, { push, parts, at: now }] },
        rows,
        // If other staged pushes exist, the reminder is already set for the oldest of them. Its handler sets the next
        // one.
        ...(live.staged.length === 0 && { remind: { dropStaged: now + STAGED_MS } }),
        reply: {},
      };
    },

    swap(state, { push, commands, parts, packs, options, ...input }, { key, now, rows }) {
      const live = liveAt(state);
      const all = parts === 0 ? commands : stagedCommands(rows, push, parts);
      const treeDepth = deeperSince(live, input.treeDepth, input.treeBelow);
      const missing = packs.filter(({ sha256 }) => !rows.has(packRow(sha256)));
      const { results, table, needsPacks } = judgePush(live, rows, {
        ...input,
        commands: all,
        packs: missing,
        treeDepth,
      });
      const dropped = droppedParts(live, (staged) => staged.push === push);
      const staged = live.staged.filter((other) => other.push !== push);
      const added = needsPacks ? missing : [];
      if (!table.changed) {
        const reply = { results, version: live.version };
        const left = staged.length === live.staged.length ? live : { ...live, staged };
        const after = afterRefusal(left, results, key, now);
        return { ...after, ...(left !== live && { rows: dropped }), reply };
      }
      const version = live.version + 1;
      const changed: LiveRepo = {
        ...live,
        staged,
        version,
        defaultBranch: adoptedBranch(live, rows, table, all),
        refs: table.count,
        refNamesBytes: table.namesBytes,
        packs: live.packs + added.length,
        ...(added.length > 0 && { treeDepth }),
        packsBytes: added.reduce((sum, { bytes }) => sum + bytes, live.packsBytes),
        updatedAt: now,
        lastPushAt: now,
      };
      const { send = [], ...upkeep } = beginUpkeep(changed, key, now);
      return {
        ...upkeep,
        rows: { ...dropped, ...packRows(added, version), ...table.changedRows(version) },
        reply: { results, version },
        send: [
          toldNamespace(changed, key),
          event(live, key, now, pushed(live, rows, all, results, options)),
          ...send,
        ],
      };
    },

    compact: (state, input, { now, rows }) => compact(liveAt(state), rows, input, now),

    findLfsObjects(state, { address, oids, bytesMax }, { rows }) {
      return { state, reply: findLfsObjects(liveAt(state, address), rows, oids, bytesMax) };
    },

    nameLfsObjects(state, { address, objects, ...input }, { rows }) {
      const live = liveAt(state, address);
      return { ...nameLfsObjects(live, rows, objects, input), reply: {} };
    },

    listLfsObjects(state, { after }, { rows }) {
      liveAt(state);
      return { state, reply: listLfsObjects(rows, after) };
    },

    createLfsLock(state, { address, ...asked }, { rows, ...context }) {
      const live = liveAt(state, address);
      return { state: live, ...createLock(live, rows, asked, context) };
    },

    listLfsLocks(state, { address, ...asked }, { rows }) {
      liveAt(state, address);
      return { state, reply: listLocks(rows, asked) };
    },

    removeLfsLock(state, { address, ...asked }, { rows }) {
      return { state: liveAt(state, address), ...removeLock(rows, asked) };
    },

    prune(state, _input, { key, now }) {
      const { at, ...step } = requestPrune(liveAt(state), key, now);
      return { ...step, reply: { at } };
    },

    upkeepEnded(state, ended, { now }) {
      return state.life === "live" ? endUpkeep(state, ended, now) : { state };
    },

    roomLacked(state, _input, { key, now }) {
      return state.life === "live" ? makeRoom(state, key, now) : { state };
    },

    upkeepDue(state, _input, { key, now }) {
      return state.life === "live" ? continueUpkeep(state, key, now) : { state };
    },

    mintToken(state, input, { key, now, rows }) {
      const live = liveAt(state);
      const { token, written } = mintToken(rows, input, now);
      const { id: tokenId, scope, expiresAt } = token;
      const created = { type: "token.created" as const, tokenId, scope, expiresAt };
      return {
        state: live,
        rows: written,
        reply: token,
        send: [event(live, key, now, created)],
      };
    },

    listTokens(state, input, { now, rows }) {
      liveAt(state);
      return { state, reply: listTokens(rows, input, now) };
    },

    revokeToken(state, { id }, { key, now, rows }) {
      const live = liveAt(state);
      const { revoked, written } = revokeToken(rows, id, now);
      if (!written) return { state: live, reply: { revoked } };
      const revocation = event(live, key, now, { type: "token.revoked", tokenId: id });
      return { state: live, rows: written, reply: { revoked }, send: [revocation] };
    },

    verifyToken(state, { address, secretHash }, { now, rows }) {
      const live = liveAt(state, address);
      const { token, written } = verifyToken(rows, secretHash, now);
      return { state: live, reply: token, ...(written && { rows: written }) };
    },

    dropStaged(state, _input, { now }) {
      if (state.life !== "live") return { state };
      const isOld = ({ at }: { at: number }) => at + STAGED_MS <= now;
      const staged = state.staged.filter((push) => !isOld(push));
      const rows = droppedParts(state, isOld);
      const [next] = staged.toSorted((one, other) => one.at - other.at);
      return {
        state: { ...state, staged },
        rows,
        remind: { dropStaged: next ? next.at + STAGED_MS : null },
      };
    },

    clearRows(state, _input, { now, rows }) {
      if (state.life !== "removed") return { state };
      const { at = now } = state;
      if (rows.size === 0 && now >= at + REPO_REMOVED_MS) return { forget: true };
      if (rows.size === 0) {
        return { state: { ...state, at }, remind: { clearRows: at + REPO_REMOVED_MS } };
      }
      const some = [...rows.keys()].slice(0, CLEARED_ROWS);
      return {
        state,
        rows: Object.fromEntries(some.map((row) => [row, null])),
        remind: { clearRows: now + CLEAR_PAUSE_MS },
      };
    },
  },
});

function entryOf(live: LiveRepo, id: string): RepoEntry {
  // The contract's schema of the reply drops the fields that callers must not see.
  return { ...live, protectedRefs: [...live.protectedRefs], id };
}

/** Notifies the namespace. Only the fields of a listing leave the actor. */
function toldNamespace(live: LiveRepo, id: string) {
  const key = namespaceKey(live.accountId, live.namespace);
  return envelope(namespace, key, "repoChanged", RepoListing.parse({ ...live, id }));
}
