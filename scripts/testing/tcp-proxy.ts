/** A TCP proxy between a process and a server. Tests can cut or stall its connections. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class TcpProxy {
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #state: "open" | "stalled" | "closed" = "open";

  /** Listens on a new port and forwards to `targetPort`, both on loopback. */
  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((client) => this.#join(client));
  }

  get port(): number {
    // The cast is safe, because a server that listens on TCP has an AddressInfo.
    return (this.#server.address() as AddressInfo).port;
  }

  /** Closes every connection, and each new connection until `open` is called. */
  cut(): void {
    this.#state = "closed";
    this.#endAll();
  }

  /** Stops forwarding in both directions without closing connections, like a link that drops packets. */
  stall(): void {
    this.#state = "stalled";
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Stops forwarding what the server sends. What clients send still arrives. */
  stallAnswers(): void {
    for (const [, server] of this.#pairs) server.pause();
  }

  open(): void {
    this.#state = "open";
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async stop(): Promise<void> {
    this.#endAll();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(client: Socket): void {
    if (this.#state === "closed") return void client.destroy();
    const server = connect(this.#targetPort, "127.0.0.1");
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, pair.toReversed()] as [Socket, Socket][]) {
      from.on("data", (bytes) => void to.write(bytes));
      from.on("error", () => {}); // "close" follows.
      from.on("close", () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
      if (this.#state === "stalled") from.pause();
    }
  }

  #endAll(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }
}
