import { PassThrough } from "node:stream";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { readEventBody } from "./read-event-body.ts";

describe("readEventBody", () => {
  const read = (body: PassThrough, held = { bytes: 0 }) =>
    readEventBody({ headers: [], body }, { held, bytesMax: 10 });

  it("readEventBody() counts the bytes that it has read until it is disposed of", async () => {
    const held = { bytes: 0 };
    const body = new PassThrough();
    body.write("four");
    body.end("four");
    const event = await read(body, held);
    await new Promise((closed) => (body.closed ? closed(undefined) : body.once("close", closed)));
    expect(String(event.bytes)).to.equal("fourfour");
    expect(held.bytes).to.equal(8);
    event[Symbol.dispose]();
    event[Symbol.dispose]();
    expect(held.bytes).to.equal(0);
  });

  it("readEventBody() refuses a body past its limit, and leaves the connection as it is", async () => {
    const held = { bytes: 0 };
    const body = new PassThrough();
    body.write("0123456789");
    body.write("0");
    expect(await codeOf(read(body, held))).to.equal("body_too_large");
    expect(held.bytes).to.equal(0);
    expect(body.destroyed).to.equal(false);
  });

  it("readEventBody() is cancelled when its sender leaves, or has left before", async () => {
    const held = { bytes: 0 };
    const leaving = new PassThrough();
    leaving.write("four");
    const code = codeOf(read(leaving, held));
    leaving.destroy();
    expect(await code).to.equal("cancelled");
    expect(await codeOf(read(leaving, held))).to.equal("cancelled");
    expect(held.bytes).to.equal(0);
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
