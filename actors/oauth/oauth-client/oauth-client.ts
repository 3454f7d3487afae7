/** Stores an OAuth client: its registration, visibility and secrets, and the verification of its domain. */
import assert from "node:assert/strict";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { type Envelope, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { hostOf } from "../../../schemas/oauth/client-uris.ts";
import { dnsCheck } from "../../../schemas/oauth/dns-check.ts";
import { AUDIT_KEPT_MS, SECRET_USED_EVERY_MS } from "../../../schemas/oauth/limits.ts";
import { type ClientEntry, oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { oauthClientList } from "../../../schemas/oauth/oauth-client-list.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { counted, differences, logged, pageOfChanges, SYSTEM } from "./change-log.ts";
import {
  answered,
  beforeEnd,
  checkDue,
  DOMAIN_CHECK_LOST_MS,
  type DomainStep,
  startVerification,
  textOf,
} from "./domain.ts";
import { ChangeRow, type LiveClient, OAuthClientState } from "./oauth-client-state.ts";
import { newSecret, secretLog, withoutOldSecret, withSecret } from "./secrets.ts";
import { checkSettings, update } from "./update.ts";

/** The entries in the change log that a new secret causes: its addition, and the removal of an older one. */
const ENTRIES_PER_SECRET = 2;

const live = { change: "updated" } as const;
const removed = { change: "removed" } as const;

/**
 * Stored at: client_id, 32 hex
 *
 * State: `{ life: "none" }`, `{ life: "removed", accountId, removedAt }` (forgotten after 90 days), or `{ life:
 * "live", accountId, registration, visibility, secrets: [{ id, lastFour, createdAt, lastUsedAt?, hash }], code,
 * domain?, checks, openLookup?: { check, queuedAt }, createdAt, updatedAt, promotedAt?, nextChange, lately? }`;
 * `lately` is `{ since, entries, authors? }`, the changes of the day that began then, and those of each author; `domain` is `{ status, host, startedAt,
 * pace: { pollMs, windowMs }, lookups, awaiting?, lastAnswer?, lastCheckedAt?, nextCheckAt?, verifiedAt?,
 * missingSince? }`, where `awaiting` is the number of the lookup whose answer counts; `openLookup` is the lookup
 * whose result did not arrive yet; the secrets themselves are stored nowhere
 *
 * Row `change.<number>`: `{ number, at, by: { type, id, clientId? }, action, changes: [{ field, from, to }] }`: the
 * last 600 changes
 */
export const oauthClientActor = defineActor(oauthClient, {
  state: OAuthClientState,
  rows: ChangeRow,
  initial: { life: "none" },

  handlers: {
    create(state, { accountId, by, settings, secret, pace }, { key, now, newId }) {
      if (state.life === "live" && state.accountId === accountId) {
        if (state.secrets[0]?.hash === secret?.hash) return { state, reply: entryOf(state) };
      }
      if (state.life !== "none") {
        throw new ActorError("conflict", `Cannot create client: "${key}" is known already`);
      }
      checkSettings(settings);
      const hasSecret = settings.tokenEndpointAuthMethod !== "none";
      assert(hasSecret === (secret !== undefined), "A client has a secret but with none");
      const secrets = secret ? [newSecret(secret, newId(), now)] : [];
      const started =
        settings.clientUri === undefined
          ? undefined
          : startVerification(hostOf(settings.clientUri), pace, { before: undefined, now });
      const made: LiveClient = {
        life: "live",
        accountId,
        registration: settings,
        visibility: "private",
        secrets,
        code: newId(),
        checks: 0,
        createdAt: now,
        updatedAt: now,
        nextChange: 0,
        ...(started && { domain: started.domain }),
      };
      const changes = differences({}, settings);
      const next = logged(made, [{ action: "created", changes }], { by, at: now });
      return {
        ...next,
        reply: entryOf(next.state),
        ...(started && { remind: { checkDomain: started.checkAt } }),
        send: [
          envelope(oauthClientList, accountId, "created", { clientId: key }),
          ...followLogo(key, settings.logoUri),
        ],
      };
    },

    get(state, { accountId }, { key }) {
      return { state, reply: entryOf(ownedBy(state, accountId, key)) };
    },

    update(state, asked, { key, now }) {
      const client = ownedBy(state, asked.accountId, key);
      const { state: next, logs, checkAt } = update(client, asked, now);
      const send = followLogo(key, asked.patch.logoUri);
      if (next === client && send.length === 0) return { state, reply: entryOf(client) };
      // One more entry is counted if a lookup follows, because its result may add an entry. A fetch of the logo alone
      // counts too, because it costs a task.
      const entries = Math.max(logs.length + Number(typeof checkAt === "number"), send.length);
      const changed = counted(next, entries, { by: asked.by, at: now });
      return {
        ...logged(changed, logs, { by: asked.by, at: now }),
        reply: entryOf(next),
        ...(checkAt !== undefined && { remind: { checkDomain: checkAt } }),
        send,
        live,
      };
    },

    addSecret(state, { accountId, by, secret }, { key, now, newId }) {
      const client = ownedBy(state, accountId, key);
      const made = newSecret(secret, newId(), now);
      const [changed, replaced] = withSecret(client, made);
      const logs = [
        ...(replaced ? [secretLog("secret_removed", replaced)] : []),
        secretLog("secret_added", made),
      ];
      // The entry of the old secret's removal is counted in advance, because nothing may keep a person from removing
      // a secret that was stolen.
      const next = counted({ ...changed, updatedAt: now }, ENTRIES_PER_SECRET, { by, at: now });
      return { ...logged(next, logs, { by, at: now }), reply: {}, live };
    },

    removeOldSecret(state, { accountId, by }, { key, now }) {
      const [next, old] = withoutOldSecret(ownedBy(state, accountId, key));
      const log = secretLog("secret_removed", old);
      return { ...logged({ ...next, updatedAt: now }, [log], { by, at: now }), reply: {}, live };
    },

    remove(state, { accountId, by }, { key, now }) {
      const client = ownedBy(state, accountId, key);
      const { rows } = logged(client, [{ action: "deleted" }], { by, at: now });
      return {
        state: { life: "removed" as const, accountId, removedAt: now },
        rows,
        reply: {},
        remind: { checkDomain: null, forget: now + AUDIT_KEPT_MS },
        send: [
          envelope(oauthClientList, accountId, "removed", { clientId: key }),
          ...followLogo(key, null),
        ],
        live: removed,
      };
    },

    tellAgain: (state) => ({ state, reply: {}, live: state.life === "removed" ? removed : live }),

    listChanges(state, { accountId, ...page }, { key, rows }) {
      if (state.life === "none" || state.accountId !== accountId) throw unknown(key);
      return { state, reply: pageOfChanges(rows, page) };
    },

    getForAuthorization(state, _input, { key }) {
      if (state.life !== "live") throw unknown(key);
      return { state, reply: { ...entryOf(state), secrets: state.secrets } };
    },

    secretUsed(state, { secretId }, { now }) {
      if (state.life !== "live") return { state };
      const used = state.secrets.find(({ id }) => id === secretId);
      const isKnown = now < (used?.lastUsedAt ?? Number.NEGATIVE_INFINITY) + SECRET_USED_EVERY_MS;
      if (!used || isKnown) return { state };
      const secrets = state.secrets.map((secret) =>
        secret === used ? { ...secret, lastUsedAt: now } : secret,
      );
      return { state: { ...state, secrets } };
    },

    checkDomain(state, _input, { key, now }) {
      if (state.life !== "live" || !state.domain || state.domain.status === "failed") {
        return { state };
      }
      const check = state.checks + 1;
      const step = checkDue(state.domain, { check, now });
      if (step.domain.awaiting !== check) return domainTransition(state, step, now);
      const lostAt = state.openLookup && state.openLookup.queuedAt + DOMAIN_CHECK_LOST_MS;
      if (lostAt !== undefined && now < lostAt) {
        // The lane is shared by all accounts, so a client has one task in it. Its result starts the next lookup.
        return { state, remind: { checkDomain: beforeEnd(state.domain, lostAt) } };
      }
      const { host } = step.domain;
      const input = { host, text: textOf(state.code), check };
      const openLookup = { check, queuedAt: now };
      return {
        ...domainTransition({ ...state, checks: check, openLookup }, step, now),
        send: [envelope(dnsCheck, key, "findText", input)],
      };
    },

    domainChecked(state, report, { now }) {
      if (state.life !== "live") return { state };
      const { openLookup, ...settled } = state;
      const step = state.domain && answered(state.domain, report, now);
      if (step) return domainTransition(settled, step, now);
      if (openLookup?.check !== report.check) return { state };
      // The verification was started again during this lookup, or has ended.
      const isWaiting = state.domain !== undefined && state.domain.status !== "failed";
      return { state: settled, ...(isWaiting && { remind: { checkDomain: now } }) };
    },

    forget(state) {
      return state.life === "removed" ? { forget: true as const } : { state };
    },
  },
});

/** Applies a domain step. Notifies subscribers if the step adds to the change log. */
function domainTransition(state: LiveClient, step: DomainStep, now: number) {
  const { domain, checkAt, logs } = step;
  return {
    ...logged({ ...state, domain }, logs, { by: SYSTEM, at: now }),
    remind: { checkDomain: checkAt },
    ...(logs.length > 0 && { live }),
  };
}

/**
 * Returns the message that makes the logo's actor fetch the logo, whenever a request sets its address, even to the
 * same one. Null removes the copy.
 */
function followLogo(key: string, uri: string | null | undefined): Envelope[] {
  return uri === undefined ? [] : [envelope(clientLogo, key, "follow", { uri })];
}

/** Returns the live client of this account. A client of another account is refused as if it did not exist. */
function ownedBy(
  state: DeepReadonly<OAuthClientState>,
  accountId: string,
  key: string,
): LiveClient {
  if (state.life !== "live" || state.accountId !== accountId) throw unknown(key);
  return state;
}

const unknown = (key: string) =>
  new ActorError("not_found", `Cannot find OAuth client: "${key}" is unknown`);

function entryOf(state: LiveClient): DeepReadonly<ClientEntry> {
  const { registration, accountId, visibility, domain, code, secrets } = state;
  const { createdAt, updatedAt, promotedAt } = state;
  return {
    ...registration,
    accountId,
    visibility,
    ...(domain && { verification: { ...domain, text: textOf(code) } }),
    secrets: secrets.map(({ hash: _, ...entry }) => entry),
    createdAt,
    updatedAt,
    ...(promotedAt !== undefined && { promotedAt }),
  };
}
