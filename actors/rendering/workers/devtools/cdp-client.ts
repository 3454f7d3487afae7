/**
 * One client of a session's browser. Its commands pass the filter, and it receives only messages of its own sessions.
 */
import {
  DEVTOOLS_ATTACHED_MAX,
  DEVTOOLS_COMMANDS_MAX,
  DEVTOOLS_STREAMS_MAX,
} from "../../../../schemas/rendering/devtools-limits.ts";
import { judge } from "./cdp-filter.ts";
import { CDP_ERRORS, type CdpCommand, type CdpMessage, readCommand } from "./cdp-message.ts";
import { CdpError } from "./cdp-router.ts";
import type { SessionBrowser } from "./session-browser.ts";

interface CdpClientParts {
  browser: SessionBrowser;
  isReadOnly: boolean;
  /** Sends a message to the client. */
  write(text: string): void;
  /** Called when the client sends the command that ends the session. */
  endSession(): void;
  /** Disconnects the client and gives it the reason. */
  cutOff(reason: string): void;
}

export class CdpClient {
  readonly #parts: CdpClientParts;
  /**
   * The DevTools session of the client's connection itself. The client receives messages of this session without a
   * session id.
   */
  readonly #base: string;
  /** The DevTools sessions that the client opened over this connection. */
  readonly #attached = new Set<string>();
  /**
   * Handles of streams that the client has not closed, for example of a PDF. Each stream is a file of the browser.
   */
  readonly #streams = new Set<string>();
  #waiting = 0;
  #hasLeft = false;

  /** Connects to the browser, or to one target. Rejects with CdpError if the target does not exist. */
  static async connect(parts: CdpClientParts, targetId?: string): Promise<CdpClient> {
    const command =
      targetId === undefined
        ? { method: "Target.attachToBrowserTarget", params: {} }
        : { method: "Target.attachToTarget", params: { targetId, flatten: true } };
    return await new Promise((resolve, reject) => {
      // The browser's next message may be that the target has closed, so the client takes messages from now on.
      parts.browser.router.send(command, ({ error, result = {} }) => {
        if (error) reject(new CdpError(`${command.method}: ${error.message}`));
        else resolve(new CdpClient(parts, String(result.sessionId)));
      });
    });
  }

  /** Use `connect`. */
  constructor(parts: CdpClientParts, base: string) {
    this.#parts = parts;
    this.#base = base;
    parts.browser.router.own(base, (message) => this.#receive(message));
  }

  /** Takes one message of the client. */
  take(text: string): void {
    const command = readCommand(text);
    if ("error" in command) {
      this.#refuse(command, CDP_ERRORS.invalidRequest, command.error);
      return;
    }
    const { sessionId } = command;
    if (sessionId !== undefined && !this.#attached.has(sessionId)) {
      this.#refuse(command, CDP_ERRORS.noSession, "Session with given id not found.");
      return;
    }
    if (this.#waiting >= DEVTOOLS_COMMANDS_MAX) {
      this.#refuse(command, CDP_ERRORS.server, `${DEVTOOLS_COMMANDS_MAX} commands wait already`);
      return;
    }
    this.#judge(command);
  }

  /** Detaches the client and all its sessions from the browser. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    const { router } = this.#parts.browser;
    for (const handle of this.#streams) {
      router.send({ method: "IO.close", params: { handle }, sessionId: this.#base }, () => {});
    }
    for (const sessionId of [this.#base, ...this.#attached]) router.disown(sessionId);
    const params = { sessionId: this.#base };
    router.send({ method: "Target.detachFromTarget", params }, () => {});
  }

  #judge(command: CdpCommand): void {
    const { method, params } = command;
    const { browser, isReadOnly, endSession } = this.#parts;
    const sessionId = command.sessionId ?? this.#base;
    const verdict = judge(method, params, { isReadOnly });
    if ("refuse" in verdict) {
      this.#refuse(command, CDP_ERRORS.server, verdict.refuse);
      return;
    }
    if ("end" in verdict) {
      this.#answer(command, { result: {} });
      endSession();
      return;
    }
    if (MAKING_STREAMS.has(method) && this.#streams.size >= DEVTOOLS_STREAMS_MAX) {
      const text = `${DEVTOOLS_STREAMS_MAX} streams are open; close one with IO.close`;
      this.#refuse(command, CDP_ERRORS.server, text);
      return;
    }
    this.#waiting += 1;
    const settle = (answer: CdpMessage) => {
      this.#waiting -= 1;
      // When a client attaches to the browser itself, Chromium sends no event before the response. So the new session
      // is recorded here.
      const made = ATTACHING.has(method) ? answer.result?.sessionId : undefined;
      if (typeof made === "string") this.#attach(made);
      this.#noteStream(answer.result?.stream);
      if (method === "IO.close") this.#streams.delete(String(params.handle));
      this.#answer(command, answer);
    };
    if ("createContext" in verdict) browser.createContext(verdict.createContext, sessionId, settle);
    else browser.router.send({ method, params: verdict.forward, sessionId }, settle);
  }

  #noteStream(handle: unknown): void {
    if (typeof handle === "string") this.#streams.add(handle);
  }

  #answer({ id, sessionId }: CdpCommand, { result, error }: CdpMessage): void {
    this.#write({ id, ...(error ? { error } : { result: result ?? {} }), ...of(sessionId) });
  }

  #refuse(command: { id?: number; sessionId?: string | undefined }, code: number, message: string) {
    const { id, sessionId } = command;
    this.#write({ ...(id !== undefined && { id }), error: { code, message }, ...of(sessionId) });
  }

  /** Takes an event of the browser. */
  #receive(message: CdpMessage): void {
    const { method, params = {}, sessionId } = message;
    if (method === "Target.detachedFromTarget" && params.sessionId === this.#base) {
      this.#lose();
      return;
    }
    if (method === "Tracing.tracingComplete") this.#noteStream(params.stream);
    if (method === "Target.attachedToTarget" && typeof params.sessionId === "string") {
      if (this.#parts.browser.hides(message)) {
        this.#letGo(params.sessionId, sessionId);
        return;
      }
      this.#attach(params.sessionId);
    }
    if (method?.startsWith("Target.") && this.#parts.browser.hides(message)) return;
    if (method === "Target.detachedFromTarget" && typeof params.sessionId === "string") {
      // The client was not notified when it was attached to an internal page, so it is not notified of the detachment
      // either.
      if (!this.#attached.delete(params.sessionId)) return;
      this.#parts.browser.router.disown(params.sessionId);
    }
    this.#write({
      method: method ?? "",
      params,
      ...of(sessionId === this.#base ? undefined : sessionId),
    });
  }

  /** The browser has ended the client's own session, and with it the sessions that the client opened over it. */
  #lose(): void {
    const { browser, cutOff } = this.#parts;
    for (const sessionId of [this.#base, ...this.#attached]) browser.router.rejectOf(sessionId);
    cutOff("the target has closed");
  }

  #attach(sessionId: string): void {
    if (this.#hasLeft || this.#attached.has(sessionId)) return;
    if (this.#attached.size >= DEVTOOLS_ATTACHED_MAX) {
      this.#parts.cutOff(`it is attached to more than ${DEVTOOLS_ATTACHED_MAX} targets`);
      return;
    }
    this.#attached.add(sessionId);
    this.#parts.browser.router.own(sessionId, (message) => this.#receive(message));
  }

  /**
   * Detaches from an internal page. A client that attaches to all pages is attached to internal pages too, and these
   * must not wait for a debugger.
   */
  #letGo(sessionId: string, parent: string | undefined): void {
    const { router } = this.#parts.browser;
    router.send({ method: "Runtime.runIfWaitingForDebugger", params: {}, sessionId }, () => {});
    const params = { sessionId };
    router.send({ method: "Target.detachFromTarget", params, sessionId: parent }, () => {});
  }

  #write(message: CdpMessage): void {
    if (!this.#hasLeft) this.#parts.write(JSON.stringify(message));
  }
}

const MAKING_STREAMS = new Set([
  "Page.printToPDF",
  "Fetch.takeResponseBodyAsStream",
  "Tracing.start",
]);
const ATTACHING = new Set(["Target.attachToTarget", "Target.attachToBrowserTarget"]);

const of = (sessionId: string | undefined) => (sessionId === undefined ? {} : { sessionId });
