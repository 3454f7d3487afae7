/**
 * Makes and verifies form marks, which protect against forged requests (CSRF). A mark is valid only for one browser,
 * session and purpose.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

interface FormOwner {
  browser: string;
  /** Id of the session; empty if nobody is signed in. */
  sessionId: string;
  /** The purpose of the form. */
  purpose: string;
}

export class FormMarks {
  readonly #secret: () => Promise<string>;

  /**
   * `secret` is the same at all gateways, because a form may be submitted to another gateway than the one that
   * rendered it.
   */
  constructor(secret: () => Promise<string>) {
    this.#secret = secret;
  }

  async make({ browser, sessionId, purpose }: FormOwner): Promise<string> {
    const mac = createHmac("sha256", await this.#secret());
    return mac.update(JSON.stringify(["form", browser, sessionId, purpose])).digest("base64url");
  }

  async matches(mark: string, owner: FormOwner): Promise<boolean> {
    const expected = Buffer.from(await this.make(owner));
    const sent = Buffer.from(mark);
    return sent.length === expected.length && timingSafeEqual(sent, expected);
  }
}
