/** Marks of forms: only a page of ours, shown to this browser and this session, can have made one. */
import { createHmac, timingSafeEqual } from "node:crypto";

export interface FormOwner {
  browser: string;
  /** Id of the session; empty where nobody is signed in. */
  sessionId: string;
  /** The purpose of the form. */
  purpose: string;
}

export class FormMarks {
  readonly #secret: () => Promise<string>;

  /** The secret is every gateway's: the one that gets a form need not be the one that showed it. */
  constructor(secret: () => Promise<string>) {
    this.#secret = secret;
  }

  async make({ browser, sessionId, purpose }: FormOwner): Promise<string> {
    const mac = createHmac("sha256", await this.#secret());
    return mac.update(JSON.stringify(["form", browser, sessionId, purpose])).digest("base64url");
  }

  async matches(mark: string, owner: FormOwner): Promise<boolean> {
    const expected = Buffer.from(await this.make(owner));
    const given = Buffer.from(mark);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}
