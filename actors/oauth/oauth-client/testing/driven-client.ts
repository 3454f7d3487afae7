/**
 * An OAuth client for tests of its handlers. It keeps the state, rows, reminders and clock from message to message.
 */
import type { DeepReadonly, Envelope, Input } from "../../../../schemas/contract.ts";
import type { Author } from "../../../../schemas/oauth/oauth-client.ts";
import type { ClientSettings } from "../../../../schemas/oauth/oauth-client-settings.ts";
import { runHandler } from "../../../../scripts/testing/run-handler.ts";
import { oauthClientActor } from "../oauth-client.ts";
import type { ChangeRow, OAuthClientState } from "../oauth-client-state.ts";

type Messages = typeof oauthClientActor.contract.messages;

export const ACCOUNT = "a".repeat(32);
export const by = { type: "api_token" as const, id: "7".repeat(32) };
export const pace = { pollMs: 60_000, windowMs: 172_800_000 };

export const settings: ClientSettings = {
  clientName: "Build Bot",
  grantTypes: ["authorization_code", "refresh_token"],
  responseTypes: ["code"],
  redirectUris: ["https://bot.example.com/callback"],
  postLogoutRedirectUris: [],
  scopes: ["artifacts.read", "artifacts.write"],
  optionalScopes: ["artifacts.write"],
  tokenEndpointAuthMethod: "client_secret_basic",
  allowedCorsOrigins: [],
};
/** Settings with everything that a public client needs, except the verification of its domain. */
export const complete: ClientSettings = {
  ...settings,
  logoUri: "https://bot.example.com/logo.png",
  clientUri: "https://bot.example.com/about",
};

export const secret = (number: number) => ({
  hash: number.toString(16).padStart(64, "0"),
  lastFour: String(number).padStart(4, "0"),
});

export class DrivenClient {
  now = 1_000_000;
  /** The author of the changes. */
  by: Author = by;
  state: DeepReadonly<OAuthClientState> = oauthClientActor.initial;
  rows = new Map<string, ChangeRow>();
  /** The time at which each reminder is due, by the name of its message. */
  readonly due = new Map<string, number>();
  changed = false;
  forgotten = false;
  live: unknown;
  sent: readonly Envelope[] = [];

  /** Returns a client that has been created. */
  static made(made: Partial<ClientSettings> = {}): DrivenClient {
    const client = new DrivenClient();
    client.create({ ...settings, ...made });
    return client;
  }

  /** Returns a client whose domain is verified. */
  static verified(made: Partial<ClientSettings> = {}): DrivenClient {
    const client = DrivenClient.made({ ...complete, ...made });
    client.check("found");
    return client;
  }

  static public(): DrivenClient {
    const client = DrivenClient.verified();
    client.update({}, "public");
    return client;
  }

  run<N extends keyof Messages & string>(message: N, input: Input<Messages[N]>) {
    let ids = this.now * 1_000;
    const handled = runHandler(oauthClientActor, message, this.state, input, {
      key: "c".repeat(32),
      now: this.now,
      newId: () => (++ids).toString(16).padStart(32, "0"),
      rows: this.rows,
    });
    this.state = handled.state;
    this.changed = handled.changed;
    this.forgotten = handled.forgotten;
    // A call that is refused does not change the state.
    if (handled.changed || handled.send.length > 0) {
      this.live = handled.live;
      this.sent = handled.send;
    }
    for (const [name, row] of Object.entries(handled.rows)) {
      if (row === null) this.rows.delete(name);
      else this.rows.set(name, row as ChangeRow);
    }
    for (const [name, at] of Object.entries(handled.remind)) {
      if (at === null) this.due.delete(name);
      else if (at !== undefined) this.due.set(name, at);
    }
    return handled.reply;
  }

  create(made: ClientSettings, secretNumber = 1) {
    const hasSecret = made.tokenEndpointAuthMethod !== "none";
    return this.run("create", {
      ...{ accountId: ACCOUNT, by, settings: made, pace },
      ...(hasSecret && { secret: secret(secretNumber) }),
    });
  }

  update(patch: Input<Messages["update"]>["patch"], visibility?: "private" | "public") {
    const asked = { accountId: ACCOUNT, by: this.by, patch, pace };
    return this.run("update", { ...asked, ...(visibility && { visibility }) });
  }

  get() {
    return this.run("get", { accountId: ACCOUNT });
  }

  addSecret(number: number) {
    return this.run("addSecret", { accountId: ACCOUNT, by: this.by, secret: secret(number) });
  }

  removeOldSecret() {
    return this.run("removeOldSecret", { accountId: ACCOUNT, by: this.by });
  }

  /**
   * Sets the clock to the time of the next lookup and runs the reminder that starts it. Returns the number of the
   * lookup.
   */
  ask(): number {
    this.now = Math.max(this.now, this.due.get("checkDomain") ?? Number.NaN);
    this.due.delete("checkDomain");
    this.run("checkDomain", {});
    const [task] = this.changed ? this.sent : [];
    return task ? (task.input as { check: number }).check : 0;
  }

  report(check: number, outcome: Input<Messages["domainChecked"]>["outcome"]): void {
    this.run("domainChecked", { check, outcome, answer: `it was ${outcome}` });
  }

  check(outcome: Input<Messages["domainChecked"]>["outcome"]): void {
    this.report(this.ask(), outcome);
  }

  /** Returns the entries of the client's change log, newest first. */
  changes() {
    return this.run("listChanges", { accountId: ACCOUNT, count: 100 }).entries;
  }
}
