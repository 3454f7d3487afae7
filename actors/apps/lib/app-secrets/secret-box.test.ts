import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { APP_SECRET_BYTES_MAX, SEALED_CHARS_MAX } from "../../../../schemas/apps/limits.ts";
import { openSecretBox } from "./open-secret-box.ts";
import { isSecretKey, newSecretKey, SecretBox, SecretKeyError } from "./secret-box.ts";

const sealedFor = { accountId: "a".repeat(32), app: "hooks", name: "SECRET" };

describe("SecretBox", () => {
  it("open() returns any sealed value, and equal values are sealed differently", () => {
    const box = new SecretBox([newSecretKey()]);
    for (const value of ["", "s", "grüße \0 😀", "x".repeat(APP_SECRET_BYTES_MAX)]) {
      const sealed = box.seal(value, sealedFor);
      expect(box.open(sealed, sealedFor)).to.equal(value);
      expect(box.seal(value, sealedFor)).to.not.equal(sealed);
      expect(sealed.length).to.be.lessThan(SEALED_CHARS_MAX);
      if (value.length > 2) expect(Buffer.from(sealed).includes(value)).to.equal(false);
    }
  });

  it("open() refuses a value that was sealed for another account, app or name", () => {
    const box = new SecretBox([newSecretKey()]);
    const sealed = box.seal("value", sealedFor);
    const others = [
      { ...sealedFor, accountId: "b".repeat(32) },
      { ...sealedFor, app: "other" },
      { ...sealedFor, name: "OTHER" },
      // Parts that run into each other.
      { accountId: `${sealedFor.accountId}h`, app: "ooks", name: "SECRET" },
    ];
    for (const other of others) {
      expect(() => box.open(sealed, other)).to.throw(SecretKeyError, "sealed for another");
    }
  });

  it("open() refuses a value that was changed anywhere", () => {
    const box = new SecretBox([newSecretKey()]);
    const sealed = box.seal("value", sealedFor);
    const from = sealed.lastIndexOf(".") + 1;
    for (let at = from; at < sealed.length - 1; at++) {
      const other = sealed[at] === "A" ? "B" : "A";
      const changed = sealed.slice(0, at) + other + sealed.slice(at + 1);
      expect(() => box.open(changed, sealedFor)).to.throw(SecretKeyError);
    }
    for (const text of ["", "v1..", "v2.00000000.AAAA", sealed.slice(0, from + 8)]) {
      expect(() => box.open(text, sealedFor)).to.throw(SecretKeyError);
    }
  });

  it("open() takes values that older keys sealed; without those it says which one is missing", () => {
    const [old, recent] = [newSecretKey(), newSecretKey()];
    const sealed = new SecretBox([old]).seal("value", sealedFor);
    const rotated = new SecretBox([recent, old]);
    expect(rotated.open(sealed, sealedFor)).to.equal("value");
    expect(rotated.isOutdated(sealed)).to.equal(true);
    expect(rotated.isOutdated(rotated.seal("value", sealedFor))).to.equal(false);
    const id = sealed.split(".")[1] ?? "";
    expect(() => new SecretBox([recent]).open(sealed, sealedFor))
      .to.throw(SecretKeyError, "TRUNKLINE_SECRETS_KEY")
      .with.property("message")
      .that.includes(`key ${id} sealed it`)
      .and.does.not.include(old)
      .and.does.not.include(recent);
  });

  it("keys are 32 bytes in base64, and an invalid one is not repeated in the error", () => {
    const key = newSecretKey();
    for (const text of [key, key.replace(/=+$/, ""), Buffer.alloc(32, 255).toString("base64url")]) {
      expect(isSecretKey(text)).to.equal(true);
    }
    for (const text of ["", "short", `${key}A`, key.slice(4), "é".repeat(43)]) {
      expect(isSecretKey(text)).to.equal(false);
      expect(() => new SecretBox([text])).to.throw(SecretKeyError, /^((?!short)[\s\S])*$/);
    }
    expect(() => new SecretBox([])).to.throw(SecretKeyError);
  });
});

describe("openSecretBox", () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "trunkline-secrets-"));
  });
  afterEach(() => rm(dataDir, { recursive: true }));

  it("openSecretBox() makes one key for all processes that start at once, readable only by its owner", async () => {
    const starts = Array.from({ length: 8 }, () => openSecretBox({ secretsKeys: [], dataDir }));
    const [first, ...others] = await Promise.all(starts);
    const sealed = first?.seal("value", sealedFor) ?? "";
    for (const box of others) expect(box.open(sealed, sealedFor)).to.equal("value");
    expect(await readdir(dataDir)).to.deep.equal(["secrets.key"]);
    const { mode } = await stat(join(dataDir, "secrets.key"));
    expect(mode & 0o777).to.equal(0o600);
    const again = await openSecretBox({ secretsKeys: [], dataDir });
    expect(again.open(sealed, sealedFor)).to.equal("value");
  });

  it("openSecretBox() takes the keys of the settings, and makes no file then", async () => {
    const key = newSecretKey();
    const box = await openSecretBox({ secretsKeys: [key], dataDir });
    expect(new SecretBox([key]).open(box.seal("v", sealedFor), sealedFor)).to.equal("v");
    expect(await readdir(dataDir)).to.deep.equal([]);
  });

  it("openSecretBox() refuses a file without a key, and names the file but not its content", async () => {
    const path = join(dataDir, "secrets.key");
    await writeFile(path, "broken\n");
    let message = "";
    await openSecretBox({ secretsKeys: [], dataDir }).catch((error: Error) => {
      message = error.message;
    });
    expect(message).to.include(path).and.not.include("broken");
    expect(await readFile(path, "utf8")).to.equal("broken\n");
  });
});
