import { expect } from "chai";
import { LOGIN_WINDOW_MS } from "../../schemas/account/limits.ts";
import { requestLimit } from "../../schemas/account/request-limit.ts";
import { SIGNUPS_PER_ADDRESS_MAX } from "../account/pages/sign-in.ts";
import { AUTHORIZATIONS_PER_ADDRESS_MAX, SIGN_OUTS_PER_ADDRESS_MAX } from "./oauth-router.ts";
import { authorizationPath } from "./testing/client-calls.ts";
import { type OAuthWorld, oauthWorld, Person, type TestClient } from "./testing/oauth-world.ts";

const FULL_NETWORKS = 10;

describe("limits of a /48 with many networks", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  before(async () => {
    world = await oauthWorld({ config: { trustProxy: "loopback" } });
    client = await world.makeClient();
  });
  after(() => world?.stop());

  /** Counts as many requests as FULL_NETWORKS networks of 2001:db8:0::/48 may make, except for `left`. */
  async function fill(act: string, limit: number, left: number): Promise<void> {
    const most = limit * FULL_NETWORKS;
    const key = `${act}-from 20010db80000/48`;
    const take = () =>
      world.bus.actors.call(requestLimit, key, "take", { limit: most, windowMs: LOGIN_WINDOW_MS });
    for (let taken = 0; taken < most - left; taken += 100) {
      const count = Math.min(100, most - left - taken);
      await Promise.all(Array.from({ length: count }, take));
    }
  }
  const personFrom = (address: string) => {
    const person = new Person(world.urls[0] ?? "");
    person.from = address;
    return person;
  };

  /** Asserts that one more network of the /48 has one request left, and that another /48 is not limited. */
  async function expectLimit(asking: (address: string) => Promise<{ status: number }>) {
    const addresses = ["2001:db8:0:a::1", "2001:db8:0:b::1", "2001:db8:1:b::1", "203.0.113.5"];
    const statuses: number[] = [];
    for (const address of addresses) statuses.push((await asking(address)).status);
    expect(statuses.map((status) => status === 429)).to.deep.equal([false, true, false, false]);
  }

  it("hold for authorization requests", async () => {
    await fill("authorize", AUTHORIZATIONS_PER_ADDRESS_MAX, 1);
    await expectLimit((address) => personFrom(address).open(authorizationPath(client)));
  });

  it("hold for sign-outs that name a client", async () => {
    await fill("sign-out", SIGN_OUTS_PER_ADDRESS_MAX, 1);
    const path = `/oauth2/logout?client_id=${client.client_id}`;
    await expectLimit((address) => personFrom(address).open(path));
  });

  it("hold for sign-ups", async () => {
    await fill("signup", SIGNUPS_PER_ADDRESS_MAX, 1);
    await expectLimit(async (address) => {
      const person = personFrom(address);
      await person.open("/signup");
      const email = `${address.replaceAll(":", "-")}@example.com`;
      return person.submit({ email, password: "correct horse" });
    });
  });
});
