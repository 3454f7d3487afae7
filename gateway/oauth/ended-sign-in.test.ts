import { expect } from "chai";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
} from "./testing/oauth-world.ts";

/** Thrown to stop the test browser at a redirect, before the browser follows it. */
class Stopped extends Error {}

describe("an authorization request whose sign-in has ended", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  before(async () => {
    world = await oauthWorld();
  });
  after(() => world?.stop());

  for (const [how, end] of [
    ["by signing out", signOut],
    ["by a new password", changePassword],
  ] as const) {
    it(`${how} gives no code, though the client has consent for all its scopes`, async () => {
      const client = await world.makeClient();
      const made = await newPerson(world);
      const { person, email, password } = made;
      const json = { email, roles: ["Administrator"] };
      const members = `/accounts/${world.accountId}/members`;
      const { body } = await world.api(members, { method: "POST", json });
      await person.open(`/login${new URL(body.result.invitation_url).search}`);
      await person.signIn(made);
      const fields = { client_id: client.client_id, response_type: "code" };
      const query = new URLSearchParams({ ...fields, redirect_uri: REDIRECT_URI });
      await person.open(`/oauth2/auth?${query}`);
      if (person.seen.url.includes("/consent")) await person.submit({ decision: "allow" });
      expect(person.seen.url).to.contain("code=");

      const other = new Person(world.urls[0] ?? "");
      await other.open(`/oauth2/auth?${query}`);
      const next = await leftAt(other, () => other.signIn({ email, password }));
      const same = new Person(world.urls[0] ?? "");
      for (const [name, cookie] of other.cookies) same.cookies.set(name, cookie);
      await end({ person, same, password });
      const { url, status, text } = await other.open(next);
      expect([status, url]).to.deep.equal([400, next]);
      expect(text).to.contain("the sign-in has ended").and.not.to.contain("code=");
    });
  }
});

interface Browsers {
  person: Person;
  /** A second window of the browser whose authorization request waits. It has the same cookies. */
  same: Person;
  password: string;
}

async function signOut({ same }: Browsers): Promise<void> {
  await same.open("/profile/clients");
  await same.submit({}, { action: "/signout" });
}

async function changePassword({ person, password }: Browsers): Promise<void> {
  await person.open("/profile/password");
  const change = { current: password, password: "better horse" };
  await person.submit(change, { action: "/profile/password" });
  expect(person.seen.url).to.contain("changed=1");
}

/** The redirect target of a form. */
async function leftAt(person: Person, submit: () => Promise<unknown>): Promise<string> {
  let next = "";
  person.onAnswer = (method, response) => {
    next = response.headers.get("location") ?? "";
    if (method === "POST") throw new Stopped();
  };
  await submit().catch((error: unknown) => {
    if (!(error instanceof Stopped)) throw error;
  });
  person.onAnswer = undefined;
  return next;
}
