/**
 * A client of the DevTools protocol that sends any text, also invalid commands, which a normal driver would not send.
 */
import { once } from "node:events";
import type { WebSocket } from "ws";

// biome-ignore lint/suspicious/noExplicitAny: a test looks at the answer of whatever command it sent.
type Value = any;

export interface CdpAnswer {
  result?: Value;
  error?: { code: number; message: string };
}

interface CdpEvent {
  method: string;
  params: Value;
  sessionId?: string;
}

export class RawCdp {
  readonly socket: WebSocket;
  /** Every event so far. */
  readonly events: CdpEvent[] = [];
  onEvent: (event: CdpEvent) => void = () => {};
  readonly #waiting = new Map<number, (answer: CdpAnswer) => void>();
  readonly #errors: ((answer: CdpAnswer) => void)[] = [];
  #last = 0;

  static async open(socket: WebSocket): Promise<RawCdp> {
    const cdp = new RawCdp(socket);
    await once(socket, "open");
    return cdp;
  }

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      const message = JSON.parse(String(data));
      if (message.method !== undefined) {
        this.events.push(message);
        this.onEvent(message);
      } else if (message.id === undefined) this.#errors.shift()?.(message);
      else this.#waiting.get(message.id)?.(message);
    });
  }

  /** Sends a command, and resolves to its response, even if the response is an error. */
  send(method: string, params: object = {}, sessionId?: string): Promise<CdpAnswer> {
    this.#last += 1;
    const id = this.#last;
    this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  /** Sends a text that need not be a valid command. `id` is the id of the expected response, if there is one. */
  sendText(text: string, id?: number): Promise<CdpAnswer> {
    this.socket.send(text);
    return new Promise((resolve) => {
      if (id === undefined) this.#errors.push(resolve);
      else this.#waiting.set(id, resolve);
    });
  }

  /** Sends a command. Resolves to its result, and rejects with the browser's error. */
  async call(method: string, params: object = {}, sessionId?: string): Promise<Value> {
    const { result, error } = await this.send(method, params, sessionId);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  /** Opens a page, and returns the ids of its target and of a session with it. */
  async openPage(params: object = {}): Promise<{ targetId: string; sessionId: string }> {
    const { targetId } = await this.call("Target.createTarget", { url: "about:blank", ...params });
    const attaching = { targetId, flatten: true };
    const { sessionId } = await this.call("Target.attachToTarget", attaching);
    return { targetId, sessionId };
  }

  async evaluate(expression: string, sessionId: string, more: object = {}): Promise<Value> {
    const asked = { expression, awaitPromise: true, returnByValue: true, ...more };
    const { result, exceptionDetails } = await this.call("Runtime.evaluate", asked, sessionId);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? "it threw");
    return result.value;
  }

  /**
   * Shows a document under a public origin in a page. The client itself answers requests below `url` with `html`, so
   * the document is not fetched.
   */
  async show(
    sessionId: string,
    { url = "https://public.example/", html = "<h1>Public</h1>", headers = [] as object[] } = {},
  ): Promise<void> {
    const answer = ({ method, params, sessionId: of }: CdpEvent) => {
      if (method !== "Fetch.requestPaused" || of !== sessionId) return;
      const { requestId, request } = params;
      if (!request.url.startsWith(url)) {
        void this.send("Fetch.continueRequest", { requestId }, sessionId);
        return;
      }
      const body = Buffer.from(html).toString("base64");
      const responseHeaders = [{ name: "content-type", value: "text/html" }, ...headers];
      const given = { requestId, responseCode: 200, responseHeaders, body };
      void this.send("Fetch.fulfillRequest", given, sessionId);
    };
    this.onEvent = answer;
    await this.call("Fetch.enable", {}, sessionId);
    await this.call("Page.navigate", { url }, sessionId);
    await this.call("Fetch.disable", {}, sessionId);
  }
}
