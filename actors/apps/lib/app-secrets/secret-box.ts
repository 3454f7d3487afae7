/** Seals secrets of apps with a key that is never on the bus, so that the stored text alone reveals nothing. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

/** The account, app and name that a value is sealed for. It cannot be opened for another app or name. */
interface SealedFor {
  accountId: string;
  app: string;
  name: string;
}

/** No key here opens a sealed value, or a given key is invalid. Usually only the operator can fix that. */
export class SecretKeyError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SecretKeyError";
  }
}

const SECRET_KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Characters of a key's hash: enough to identify the key. */
const KEY_ID_CHARS = 8;
const SEALED = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]+)$/;

interface Key {
  id: string;
  bytes: Uint8Array;
}

export class SecretBox {
  /** The first key seals values. Every key can open values. */
  readonly #keys: readonly [Key, ...Key[]];

  /** Keys of 32 bytes in base64, the newest first. */
  constructor(keys: readonly string[]) {
    const [first, ...rest] = keys.map(readKey);
    if (!first) throw new SecretKeyError("Cannot seal secrets: there is no key");
    this.#keys = [first, ...rest];
  }

  /** Seals a value with AES-256-GCM. The result is `v1.<key id>.<nonce, sealed value and tag, in base64url>`. */
  seal(value: string, sealedFor: SealedFor): string {
    const [{ id, bytes }] = this.#keys;
    // Random nonces of 96 bits may be used 2^32 times with one key (NIST SP 800-38D, section 8.3).
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", bytes, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(boundTo(sealedFor));
    const sealed = Buffer.concat([nonce, cipher.update(value, "utf8"), cipher.final()]);
    return `v1.${id}.${Buffer.concat([sealed, cipher.getAuthTag()]).toString("base64url")}`;
  }

  /**
   * Opens a sealed value. Throws SecretKeyError if no key opens it or it was sealed for another account, app or name.
   */
  open(sealed: string, sealedFor: SealedFor): string {
    const [, id = "", text = ""] = SEALED.exec(sealed) ?? [];
    const cannot = `Cannot open secret ${sealedFor.name} of app ${sealedFor.app}`;
    if (text === "") throw new SecretKeyError(`${cannot}: it is not what was sealed`);
    const key = this.#keys.find((known) => known.id === id);
    if (!key) {
      const known = this.#keys.map((one) => one.id).join(", ");
      const remedy =
        "add that key to TRUNKLINE_SECRETS_KEY behind the new one, or put secrets.key back, or set the secret again";
      throw new SecretKeyError(`${cannot}: key ${id} sealed it, and here is ${known}; ${remedy}`);
    }
    const bytes = Buffer.from(text, "base64url");
    if (bytes.length < NONCE_BYTES + TAG_BYTES) {
      throw new SecretKeyError(`${cannot}: it is cut short`);
    }
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", key.bytes, nonce, {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(boundTo(sealedFor));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const opened = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString("utf8");
    } catch (cause) {
      const text = `${cannot}: it was changed, or sealed for another app or name`;
      throw new SecretKeyError(text, { cause });
    }
  }

  /** Ids of the keys; the first key seals. An id is no secret. */
  get keyIds(): string[] {
    return this.#keys.map(({ id }) => id);
  }

  /** Returns true if an older key sealed the value, so that it should be sealed again. */
  isOutdated(sealed: string): boolean {
    return keyIdOf(sealed) !== this.#keys[0].id;
  }
}

/** Returns the id of the key that sealed the text; undefined if no key sealed it. */
export const keyIdOf = (sealed: string): string | undefined => SEALED.exec(sealed)?.[1];

export const newSecretKey = () => randomBytes(SECRET_KEY_BYTES).toString("base64");

/** Returns whether the text is base64 or base64url of exactly 32 bytes, with or without padding. */
export function isSecretKey(text: string): boolean {
  const bare = text.replace(/=+$/, "");
  return (
    /^[A-Za-z0-9+/_-]{43}$/.test(bare) && Buffer.from(bare, "base64").length === SECRET_KEY_BYTES
  );
}

function readKey(text: string): Key {
  // The error never quotes the text: it may be a real key with a typing error.
  if (!isSecretKey(text)) {
    throw new SecretKeyError("Cannot seal secrets: expected keys of 32 bytes in base64");
  }
  const bytes = Buffer.from(text, "base64");
  const hash = createHash("sha256").update("trunkline secrets key\0").update(bytes).digest("hex");
  return { id: hash.slice(0, KEY_ID_CHARS), bytes };
}

/** Joins the parts as JSON, which separates them unambiguously whatever they contain. */
const boundTo = ({ accountId, app, name }: SealedFor) =>
  Buffer.from(JSON.stringify([accountId, app, name]));
