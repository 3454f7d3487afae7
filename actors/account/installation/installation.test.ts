import { expect } from "chai";
import { ADMINISTRATORS_MAX } from "../../../schemas/account/installation.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { installationActor } from "./installation.ts";

const first = { accountId: "1".repeat(32) };
const second = { accountId: "2".repeat(32) };

describe("installation", () => {
  it("claim() grants the first caller, also if it repeats, and returns the winner to all later ones", () => {
    const unclaimed = runHandler(installationActor, "get", installationActor.initial, {});
    expect(unclaimed.reply).to.deep.equal({ accountId: null });
    const { state, reply } = runHandler(
      installationActor,
      "claim",
      installationActor.initial,
      first,
    );
    expect(reply).to.deep.equal(first);
    expect(runHandler(installationActor, "get", state, {}).reply).to.deep.equal(first);
    for (const input of [first, second]) {
      const later = runHandler(installationActor, "claim", state, input);
      expect(later).to.deep.include({ changed: false, reply: first });
    }
  });

  const ada = { userId: "a".repeat(32), email: "ada@example.com" };
  const other = (number: number) => ({
    userId: number.toString(16).padStart(32, "0"),
    email: `${number}@example.com`,
  });
  const run = (state: object, message: string, input: object) =>
    runHandler(installationActor, message as never, state as never, input as never);

  it("nameFirst() adds the first user once, and adds nobody after administrators have changed", () => {
    const named = run(installationActor.initial, "nameFirst", ada).state;
    expect(run(named, "listAdministrators", {}).reply).to.deep.equal({ administrators: [ada] });
    expect(run(named, "nameFirst", other(1))).to.include({ changed: false });
    // Another claim does not change the administrators.
    expect(run(named, "claim", first).state).to.deep.equal({ ...first, administrators: [ada] });
    const moved = run(run(named, "addAdministrator", other(1)).state, "removeAdministrator", ada);
    expect(run(moved.state, "nameFirst", ada)).to.include({ changed: false });
    expect(run(moved.state, "isAdministrator", ada).reply).to.deep.equal({ is: false });
    expect(run(moved.state, "isAdministrator", other(1)).reply).to.deep.equal({ is: true });
  });

  it("addAdministrator() adds a person once, up to the limit", () => {
    let state: object = run(installationActor.initial, "nameFirst", ada).state;
    for (let count = 1; count < ADMINISTRATORS_MAX; count++) {
      state = run(state, "addAdministrator", other(count)).state;
    }
    expect(run(state, "addAdministrator", ada)).to.include({ changed: false });
    expect(() => run(state, "addAdministrator", other(0)))
      .to.throw(ActorError)
      .with.property("code", "limit_reached");
  });

  it("removeAdministrator() refuses an unknown person, and the last one", () => {
    const { state } = run(installationActor.initial, "nameFirst", ada);
    for (const [who, code] of [
      [other(1), "not_found"],
      [ada, "conflict"],
    ] as const) {
      expect(() => run(state, "removeAdministrator", { userId: who.userId }))
        .to.throw(ActorError)
        .with.property("code", code);
    }
  });
});
