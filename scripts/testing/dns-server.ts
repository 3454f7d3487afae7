/** A DNS server on loopback that serves the test's TXT records over UDP and TCP on one port. */

import type { Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo, Server as TcpServer } from "node:net";
import dns, { type DnsHandler, Packet } from "dns2";

/** The strings of each TXT record, or another kind of response. With "silence" the server does not respond. */
export type TxtAnswer =
  | readonly (readonly string[])[]
  | "NXDOMAIN"
  | "SERVFAIL"
  | "REFUSED"
  | "silence";

const PORT_TRIES_MAX = 20;

export class DnsServer implements AsyncDisposable {
  /** The response for each name, in lower case. Names without an entry do not exist. */
  readonly records = new Map<string, TxtAnswer>();
  /** The names that were queried, with the transport of each query. */
  readonly asked: { name: string; over: "udp" | "tcp" }[] = [];
  #udp: UdpSocket | undefined;
  #tcp: TcpServer | undefined;
  #port = 0;

  static async start(): Promise<DnsServer> {
    const server = new DnsServer();
    await server.#listen();
    return server;
  }

  /** The server's address in the form that the setting needs. */
  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = [this.#udp, this.#tcp].map((server) => server && once(server, "close"));
    this.#udp?.close();
    this.#tcp?.close();
    await Promise.all(closed);
  }

  /**
   * Listens on a TCP port that the system chooses, and on the same UDP port. If the UDP port is in use, tries again
   * with another port.
   */
  async #listen(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const tcp = dns.createTCPServer(this.#answer("tcp"));
      tcp.listen(0, "127.0.0.1");
      await once(tcp, "listening");
      const { port } = tcp.address() as AddressInfo;
      const udp = dns.createUDPServer(this.#answer("udp"));
      try {
        udp.bind(port, "127.0.0.1");
        await once(udp, "listening");
        this.#tcp = tcp;
        this.#udp = udp;
        this.#port = port;
        return;
      } catch (error) {
        tcp.close();
        if (attempt === PORT_TRIES_MAX) throw error;
      }
    }
  }

  #answer(over: "udp" | "tcp"): DnsHandler {
    return (request, send) => {
      const [question] = request.questions;
      const name = question?.name.toLowerCase() ?? "";
      this.asked.push({ name, over });
      const answer = this.records.get(name) ?? "NXDOMAIN";
      if (answer === "silence") return;
      const response = Packet.createResponseFromRequest(request);
      if (typeof answer === "string") response.header.rcode = Packet.RCODE[answer];
      else {
        const { TXT } = Packet.TYPE;
        const shared = { name, type: TXT, class: Packet.CLASS.IN, ttl: 1 };
        for (const strings of answer) {
          response.answers.push({ ...shared, data: [...strings] } as Packet["answers"][number]);
        }
      }
      void send(response);
    };
  }
}
