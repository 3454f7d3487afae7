/** The function below runs inside a page, so it uses no imports and no variables of this module. */

/** Replaces `WebSocket` in the page by a class whose connections fail as if the network had failed. */
export function stubWebSocket(): void {
  class UnreachableWebSocket extends EventTarget {
    static readonly CONNECTING = 0;
    static readonly OPEN = 1;
    static readonly CLOSING = 2;
    static readonly CLOSED = 3;
    readonly url: string;
    readonly bufferedAmount = 0;
    readonly extensions = "";
    readonly protocol = "";
    binaryType = "blob";
    readyState = UnreachableWebSocket.CONNECTING;
    onopen: ((event: Event) => void) | null = null;
    onmessage: ((event: Event) => void) | null = null;
    onerror: ((event: Event) => void) | null = null;
    onclose: ((event: Event) => void) | null = null;

    constructor(url: string | URL) {
      super();
      this.url = String(url);
      setTimeout(() => {
        this.readyState = UnreachableWebSocket.CLOSED;
        this.#tell(new Event("error"), this.onerror);
        this.#tell(new CloseEvent("close", { code: 1006 }), this.onclose);
      });
    }

    send(): void {
      throw new DOMException("Still in CONNECTING state", "InvalidStateError");
    }

    close(): void {}

    #tell(event: Event, listener: ((event: Event) => void) | null): void {
      this.dispatchEvent(event);
      listener?.call(this, event);
    }
  }
  Object.assign(globalThis, { WebSocket: UnreachableWebSocket });
}
