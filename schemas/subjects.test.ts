import { expect } from "chai";
import { SeededRandom } from "../scripts/testing/seeded-random.ts";
import { SHARDS, SHARDS_MIN } from "./limits.ts";
import {
  addressOf,
  callSubject,
  decodeKey,
  encodeKey,
  fnv1a32,
  readAddress,
  shardOf,
  stateSubjects,
} from "./subjects.ts";

const SEED = 20_261_121;

const ODD_KEYS = [
  ".",
  "..",
  "a.",
  ".a",
  "a..b",
  "a.b",
  "=",
  "=41",
  "a.=.b",
  "*",
  ">",
  "a b",
  "a\nb",
  "a\tb\0",
  "é",
  "\uFEFFbyte order mark",
  "日本語.キー",
  "👩‍👩‍👧",
  "a/b",
  "$KV",
  "__proto__",
  "A",
  "a",
];

describe("encodeKey()", function () {
  this.timeout(10_000);
  it("decodeKey() restores every key, unusual ones and 3,000 random ones", () => {
    const random = new SeededRandom(SEED);
    for (const key of [...ODD_KEYS, ...Array.from({ length: 3_000 }, () => randomKey(random))]) {
      const encoded = encodeKey(key);
      expect(decodeKey(encoded), `seed ${SEED}, ${JSON.stringify(key)}`).to.equal(key);
      expect(encoded).to.match(/^[\w=-]+(\.[\w=-]+)*$/);
      // No encoded key may contain the token `=`, because it separates a key from the names of its rows.
      expect(encoded.split(".")).not.to.include("=");
    }
  });

  it("decodeKey() restores every ASCII character, and refuses other spellings of it", () => {
    for (let code = 0; code < 128; code++) {
      const character = String.fromCharCode(code);
      for (const key of [`p${character}7`, character]) {
        expect(decodeKey(encodeKey(key))).to.equal(key);
      }
      const escaped = `=${code.toString(16).toUpperCase().padStart(2, "0")}`;
      for (const other of [`p${escaped}7`, `p${escaped.toLowerCase()}7`]) {
        if (other === encodeKey(`p${character}7`)) continue;
        expect(() => decodeKey(other), other).to.throw("Cannot decode key");
      }
    }
  });

  it("encodeKey() leaves readable keys as they are", () => {
    for (const key of ["a", "a.b-c_d.E9", "0123"]) expect(encodeKey(key)).to.equal(key);
  });

  it("encodeKey() distinguishes or refuses keys that are not well-formed Unicode", () => {
    expect(() => encodeKey("\ud800")).to.throw("Cannot encode key");
    expect(() => encodeKey("a\udfffb")).to.throw("Cannot encode key");
    expect(encodeKey("\ud83d\ude00")).to.equal("=F0=9F=98=80");
  });

  it("decodeKey() refuses text that encodeKey() cannot produce", () => {
    for (const text of ["=", "=4", "=zz", "=c3", "a=", "=FF", "=C3", "=41", "a..b", "é", ""])
      expect(() => decodeKey(text), text).to.throw("Cannot decode key");
  });
});

describe("shardOf()", function () {
  this.timeout(10_000);
  it("fnv1a32() matches the published test vectors", () => {
    expect(fnv1a32("")).to.equal(0x811c9dc5);
    expect(fnv1a32("a")).to.equal(0xe40c292c);
    expect(fnv1a32("foobar")).to.equal(0xbf9cf968);
    expect(fnv1a32("chongo was here!\n")).to.equal(0xd49930d5);
  });

  it("fnv1a32() hashes the UTF-8 bytes of the text", () => {
    for (const text of ["é", "abcé", "grüße", "a\u{1f600}b", "\u07ff\u0800"]) {
      let hash = 0x811c9dc5;
      for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
      expect(fnv1a32(text), text).to.equal(hash >>> 0);
    }
  });

  it("callSubject() of any key is read back, and each shard of each number has some", () => {
    const random = new SeededRandom(SEED);
    const keys = [...ODD_KEYS, ...Array.from({ length: 3_000 }, () => randomKey(random))];
    const addresses = keys.map((key) => addressOf("counter", key));
    for (const shards of [SHARDS_MIN, SHARDS, 256]) {
      const numbers = addresses.map((address) => shardOf(address, shards));
      expect(new Set(numbers), `${shards} shards, seed ${SEED}`).to.have.property("size", shards);
      expect(Math.max(...numbers)).to.equal(shards - 1);
    }
    const subjects = addresses.map((address) => callSubject(shardOf(address), address));
    expect(subjects.map((subject) => readAddress(subject).key)).to.deep.equal(keys);
  });
});

describe("readAddress()", () => {
  it("reads kind and key of every family of subjects", () => {
    for (const prefix of ["shard.3", "mail.63"]) {
      expect(readAddress(`${prefix}.counter.a.b=20c`)).to.deep.equal({
        kind: "counter",
        key: "a.b c",
      });
    }
  });

  it("refuses a subject without key", () => {
    for (const subject of ["shard.3", "shard.3.counter", "shard", ""]) {
      expect(() => readAddress(subject), subject).to.throw("Cannot read address");
    }
  });
});

describe("stateSubjects()", function () {
  this.timeout(10_000);
  const subjects = stateSubjects("state-0");

  it("row() of one key never equals a row or a value of another", () => {
    const random = new SeededRandom(SEED);
    const keys = ["a", "a.b", "a.b.c", "a.=", "a.=.b", "=", ...ODD_KEYS];
    for (let i = 0; i < 100; i++) keys.push(randomKey(random));
    const owners = new Map<string, string>();
    for (const key of new Set(keys)) {
      const address = addressOf("counter", key);
      const own = [
        subjects.value(address),
        ...["b", "c", "b.c", "=", "x y", "."].map((row) => subjects.row(address, row)),
      ];
      for (const subject of own) {
        expect(owners.get(subject), subject).to.equal(undefined);
        owners.set(subject, key);
      }
      const prefix = subjects.rows(address).slice(0, -1);
      for (const [subject, owner] of owners) {
        if (subject.startsWith(prefix)) expect(owner, subject).to.equal(key);
      }
    }
  });

  it("rowName() reads the name that row() wrote", () => {
    for (const key of ODD_KEYS) {
      for (const row of ODD_KEYS) {
        expect(subjects.rowName(subjects.row(addressOf("counter", key), row))).to.equal(row);
      }
    }
  });

  it("readReminder() returns the shard and the target of a reminder's subject, stored or fired", () => {
    for (const key of ODD_KEYS) {
      const address = addressOf("counter", key);
      const stored = subjects.remind(7, address, "tick");
      const fired = subjects.firedFor(stored) ?? "";
      expect(subjects.firedFor(subjects.value(address))).to.equal(undefined);
      expect(subjects.firedFor(fired)).to.equal(undefined);
      const target = { shard: 7, kind: "counter", key, message: "tick" };
      expect(subjects.readReminder(stored)).to.deep.equal(target);
      expect(subjects.readReminder(fired)).to.deep.equal(target);
    }
  });
});

/** Returns a random key with all sorts of characters, often with several tokens. */
function randomKey(random: SeededRandom): string {
  const alphabets = ["abcXYZ019_-", "..=*>$/ %", "éüß€日本語キー👩🚀\u0000\n\uFEFF"];
  const length = random.integer(1, 12);
  let key = "";
  while (key.length < length) key += random.pick([...random.pick(alphabets)]);
  return key;
}
