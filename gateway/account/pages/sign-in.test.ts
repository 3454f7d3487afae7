import { randomBytes } from "node:crypto";
import { expect } from "chai";
import {
  SOURCE_GUESSES_FREE,
  SOURCE_PAUSE_MS,
} from "../../../actors/account/login-guard/login-guard.ts";
import { LOGIN_WINDOW_MS } from "../../../schemas/account/limits.ts";
import { loginGuard } from "../../../schemas/account/login-guard.ts";
import { requestLimit } from "../../../schemas/account/request-limit.ts";
import { session } from "../../../schemas/account/session.ts";
import { user } from "../../../schemas/account/user.ts";
import { newPerson, type OAuthWorld, oauthWorld, Person } from "../../oauth/testing/oauth-world.ts";
import { Refused } from "../../pages/refused.ts";
import { PASSWORD_HASHES_PER_SOURCE_MAX } from "../password-hasher.ts";
import { newSessionText, sessionAddress } from "./browser-cookies.ts";
import { openSession } from "./open-session.ts";
import {
  changePassword,
  LOGINS_PER_ADDRESS_MAX,
  type Person as Signer,
  signIn,
} from "./sign-in.ts";

const newPersonId = () => randomBytes(16).toString("hex");

describe("sign-in", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  before(async () => {
    world = await oauthWorld({ config: { trustProxy: "loopback" } });
  });
  after(() => world?.stop());

  it("fails if its password was checked before the password changed", async () => {
    const { actors } = world.bus;
    const { email, password } = await newPerson(world);
    const given = { email, password, address: "192.0.2.1" };
    const early = await signIn(actors, given);
    const kept = await signIn(actors, given);
    const changing = await opened(kept);
    const change = { current: password, password: "better horse", address: given.address };
    await changePassword(actors, { ...kept, sessionId: changing.id }, change);
    await refused(early);
    expect(await isOpen(changing)).to.equal(true);
    // The same holds for later checks.
    const next = await opened(await signIn(actors, { ...given, password: "better horse" }));
    await refused(early);
    expect(await isOpen(next)).to.equal(true);
  });

  it("of two at once with a hash of an earlier release succeeds twice, and renews the hash", async () => {
    const { actors } = world.bus;
    const id = newPersonId();
    const email = `${id}@example.com`;
    // The test vector for "pleaseletmein" in RFC 7914 section 12.
    const hash = "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2";
    const [salt, bytes] = [Buffer.from("SodiumChloride"), Buffer.from(hash, "hex")];
    const dated = `scrypt$16384$8$1$${salt.toString("base64url")}$${bytes.toString("base64url")}`;
    await actors.call(user, email, "register", { id, email, passwordHash: dated, accounts: [] });
    const given = { email, password: "pleaseletmein", address: "192.0.2.3" };
    const both = await Promise.all([signIn(actors, given), signIn(actors, given)]);
    for (const person of both) expect(await isOpen(await opened(person))).to.equal(true);
    const { passwordHash } = await actors.call(user, email, "getPassword", {});
    expect(passwordHash).to.match(/^\$argon2id\$/);
  });

  it("makes the browser known to the user", async () => {
    const { actors } = world.bus;
    const { email, password } = await newPerson(world);
    const person = await signIn(actors, { email, password, address: "192.0.2.1" });
    const { passwordHash: before } = await actors.call(user, email, "getPassword", {});
    for (let round = 0; round < 5; round++) {
      const after = before;
      const { id } = await opened(person);
      const { ended } = await actors.call(user, email, "setPassword", {
        before,
        after,
        ends: { keep: null },
      });
      expect(ended).to.include(id);
    }
  });

  it("works for the person while another address guesses their password", async () => {
    const { email, password } = await newPerson(world);
    const guesser = new Person(world.urls[0] ?? "");
    guesser.from = "198.51.100.7";
    await guesser.open("/login");
    for (let i = 0; i < SOURCE_GUESSES_FREE; i++) {
      expect((await guesser.signIn({ email, password: "x" })).status).to.equal(401);
    }
    const held = await guesser.signIn({ email, password });
    expect(held.status).to.equal(429);
    expect(Number(held.headers.get("retry-after"))).to.be.within(1, SOURCE_PAUSE_MS / 1_000);
    const stranger = new Person(world.urls[0] ?? "");
    stranger.from = "203.0.113.9";
    await stranger.open("/login");
    expect((await stranger.signIn({ email, password })).url).to.contain("/console");
  });

  it("answers 429 if one network has many passwords checked, and lets others sign in meanwhile", async () => {
    const { email, password } = await newPerson(world);
    const crowd = await Promise.all(
      Array.from({ length: 3 * PASSWORD_HASHES_PER_SOURCE_MAX }, async () => {
        const one = new Person(world.urls[0] ?? "");
        one.from = "198.51.100.9";
        await one.open("/login");
        return one;
      }),
    );
    const stranger = new Person(world.urls[0] ?? "");
    stranger.from = "203.0.113.10";
    await stranger.open("/login");
    const signingIn = crowd.map((one, index) =>
      one.signIn({ email: `nobody-${index}@example.com`, password }),
    );
    expect((await stranger.signIn({ email, password })).url).to.contain("/console");
    const answers = await Promise.all(signingIn);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).to.be.within(1, answers.length - PASSWORD_HASHES_PER_SOURCE_MAX);
    expect(refused[0]?.headers.get("retry-after")).to.equal("2");
    expect(refused[0]?.text).to.contain("Too many people sign in from where you are");
    expect(answers.filter(({ status }) => status !== 429 && status !== 401)).to.deep.equal([]);
  });

  it("works in a known browser while many addresses guess", async () => {
    const { person, email, password } = await newPerson(world);
    person.from = "198.51.100.7";
    await person.open("/profile/clients");
    await person.submit({}, { action: "/signout" });
    expect(person.seen.url).to.contain("/login");
    const guess = { isKnown: false };
    for (let i = 0; ; i++) {
      const from = `network ${i}`;
      const { waitMs } = await world.bus.actors.call(loginGuard, email, "take", { from, ...guess });
      if (waitMs > 0) break;
    }
    const stranger = new Person(world.urls[0] ?? "");
    await stranger.open("/login");
    expect((await stranger.signIn({ email, password })).status).to.equal(429);
    expect((await person.signIn({ email, password: "x" })).status).to.equal(401);
    expect((await person.signIn({ email, password })).url).to.contain("/console");
    // A browser's proof counts only for that person and that browser.
    const { email: other } = await newPerson(world);
    for (let i = 0; ; i++) {
      const from = `network ${i}`;
      const { waitMs } = await world.bus.actors.call(loginGuard, other, "take", { from, ...guess });
      if (waitMs > 0) break;
    }
    await person.open("/profile/clients");
    await person.submit({}, { action: "/signout" });
    expect((await person.signIn({ email: other, password: "x" })).status).to.equal(429);
  });

  it("counts wrong passwords of known browsers and of signed-in people too", async () => {
    const { person, email, password } = await newPerson(world);
    const form = { action: "/profile/password" };
    await person.open("/profile/password");
    const change = (current: string) => person.submit({ current, password: "better horse" }, form);
    for (let i = 0; i < SOURCE_GUESSES_FREE; i++) expect((await change("x")).status).to.equal(403);
    expect((await change(password)).status).to.equal(429);
    await person.submit({}, { action: "/signout" });
    for (let i = 0; i < SOURCE_GUESSES_FREE; i++) {
      expect((await person.signIn({ email, password: "x" })).status).to.equal(401);
    }
    expect((await person.signIn({ email, password })).status).to.equal(429);
    const elsewhere = new Person(world.urls[0] ?? "");
    await elsewhere.open("/login");
    expect((await elsewhere.signIn({ email, password })).url).to.contain("/console");
  });

  it("replaces the browser's session when the person changes the password", async () => {
    const { person, password } = await newPerson(world);
    const stolen = person.cookies.get("tl_session;/");
    await person.open("/profile/password");
    const change = { current: password, password: "better horse" };
    const changed = await person.submit(change, { action: "/profile/password" });
    expect([changed.status, changed.url]).to.deep.equal([
      200,
      `${world.urls[0]}/profile/password?changed=1`,
    ]);
    expect(person.cookies.get("tl_session;/")?.value).to.be.a("string");
    expect(person.cookies.get("tl_session;/")?.value).not.to.equal(stolen?.value);
    const thief = new Person(world.urls[0] ?? "");
    if (stolen) thief.cookies.set("tl_session;/", stolen);
    expect((await thief.open("/profile/password")).url).to.contain("/login");
  });

  it("sign-up answers a known address exactly as a new one, and does not change its user", async () => {
    const known = await newPerson(world);
    const signUpAs = async (email: string) => {
      const person = new Person(world.urls[0] ?? "");
      const statuses: number[] = [];
      person.onAnswer = (_method, { status }) => statuses.push(status);
      await person.open("/signup");
      const { url, text } = await person.submit({ email, password: "another horse" });
      const shown = text.replaceAll(/name="mark" value="[^"]*"/g, "").replaceAll(email, "");
      return { statuses, url, shown, cookies: [...person.cookies.keys()] };
    };
    const ofNew = await signUpAs("never-seen@example.com");
    expect(await signUpAs(known.email)).to.deep.equal(ofNew);
    expect(ofNew.shown).to.contain("Sign in");
    const again = new Person(world.urls[0] ?? "");
    await again.open("/login");
    const wrong = await again.signIn({ email: known.email, password: "another horse" });
    expect(wrong.status).to.equal(401);
    expect((await again.signIn(known)).url).to.contain("/console");
  });

  it("does not count for its network if it succeeds", async () => {
    const { email, password } = await newPerson(world);
    const network = { limit: LOGINS_PER_ADDRESS_MAX, windowMs: LOGIN_WINDOW_MS };
    const left = async () =>
      (await world.bus.actors.call(requestLimit, "login-from 192.0.2.77", "take", network))
        .remaining;
    const before = await left();
    await signIn(world.bus.actors, { email, password, address: "192.0.2.77" });
    expect(await left()).to.equal(before - 1);
  });

  async function opened(person: Signer) {
    const text = newSessionText();
    await openSession(world.bus.actors, text, person);
    return sessionAddress(text);
  }

  async function refused(person: Signer) {
    const text = newSessionText();
    const error = await openSession(world.bus.actors, text, person).catch((reason) => reason);
    expect(error).to.be.instanceOf(Refused).and.include({ status: 401 });
    expect(await isOpen(sessionAddress(text))).to.equal(false);
  }

  async function isOpen({ id, secretHash }: { id: string; secretHash: string }): Promise<boolean> {
    return world.bus.actors.call(session, id, "get", { secretHash }).then(
      () => true,
      () => false,
    );
  }
});
