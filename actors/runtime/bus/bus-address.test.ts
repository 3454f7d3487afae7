import { expect } from "chai";
import { readBusAddress, withoutPasswords } from "./bus-address.ts";

describe("bus address", () => {
  it("readBusAddress() separates user and password from the URLs", () => {
    expect(readBusAddress("nats://ada:s%40cret%2C@127.0.0.1:4222")).to.deep.equal({
      servers: ["nats://127.0.0.1:4222"],
      user: "ada",
      pass: "s@cret,",
    });
  });

  it("readBusAddress() needs credentials in only one of several URLs", () => {
    expect(
      readBusAddress("nats://ada:secret@a:1, tls://[::1]:2,nats://ada:secret@c:3"),
    ).to.deep.equal({
      servers: ["nats://a:1", "tls://[::1]:2", "nats://c:3"],
      user: "ada",
      pass: "secret",
    });
    expect(readBusAddress("nats://a:1")).to.deep.equal({ servers: ["nats://a:1"] });
  });

  it("readBusAddress() refuses two passwords, and names the server but no secret", () => {
    const read = () => readBusAddress("nats://ada:first@a:1,nats://ada:second@b:2");
    expect(read).to.throw("Cannot read bus address: b:2 has other credentials than the first");
  });

  it("readBusAddress() refuses a text that is no URL", () => {
    for (const text of ["", "nats://", "127.0.0.1:4222", "nats://a:1,,nats://b:2"]) {
      expect(() => readBusAddress(text), text).to.throw('expected "nats://host:port", found "');
    }
    expect(() => readBusAddress("nats://ada:secret@")).to.throw('found "nats://ada:…@"');
  });

  it("withoutPasswords() hides each password and nothing else", () => {
    expect(withoutPasswords("nats://ada:secret@a:1,nats://bob:x@b:2,tls://c:3")).to.equal(
      "nats://ada:…@a:1,nats://bob:…@b:2,tls://c:3",
    );
  });
});
