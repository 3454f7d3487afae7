import { PassThrough } from "node:stream";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { eventBudget, readEventBody } from "./read-event-body.ts";

describe("readEventBody", () => {
  const read = (body: PassThrough, budget = eventBudget(), owners = ["a", "a.hooks"]) =>
    readEventBody({ headers: [], body }, { budget, owners, bytesMax: 10 });

  it("readEventBody() counts the bytes that it has read until it is disposed of", async () => {
    const budget = eventBudget();
    const body = new PassThrough();
    body.write("four");
    body.end("four");
    const event = await read(body, budget);
    await new Promise((closed) => (body.closed ? closed(undefined) : body.once("close", closed)));
    expect(String(event.bytes)).to.equal("fourfour");
    expect(budget.bytes).to.equal(8);
    event[Symbol.dispose]();
    event[Symbol.dispose]();
    expect(budget.bytes).to.equal(0);
  });

  it("readEventBody() refuses a body past its limit, and leaves the connection as it is", async () => {
    const budget = eventBudget();
    const body = new PassThrough();
    body.write("0123456789");
    body.write("0");
    expect(await codeOf(read(body, budget))).to.equal("body_too_large");
    expect(budget.bytes).to.equal(0);
    expect(body.destroyed).to.equal(false);
  });

  it("readEventBody() is cancelled when its sender leaves, or has left before", async () => {
    const budget = eventBudget();
    const leaving = new PassThrough();
    leaving.write("four");
    const code = codeOf(read(leaving, budget));
    leaving.destroy();
    expect(await code).to.equal("cancelled");
    expect(await codeOf(read(leaving, budget))).to.equal("cancelled");
    expect(budget.bytes).to.equal(0);
  });
});

async function codeOf(reading: Promise<unknown>): Promise<string | undefined> {
  try {
    await reading;
    return undefined;
  } catch (error) {
    return error instanceof ActorError ? error.code : String(error);
  }
}
