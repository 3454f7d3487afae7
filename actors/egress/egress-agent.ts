/** Node's HTTP agents on top of the egress guard: the guard opens every connection that they use. */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { EGRESS_IDLE_MS } from "../../schemas/limits.ts";
import { systemError } from "./egress-error.ts";
import type { EgressGuard } from "./egress-guard.ts";
import type { LookupOwner } from "./lookup-slots.ts";

interface EgressAgentOptions {
  guard: EgressGuard;
  /** Aborts connection attempts when the owner of the agent is closed. */
  signal: AbortSignal;
  /** Whether connections are kept for the next request to the same origin. */
  keepAlive: boolean;
  /**
   * Maximum idle connections to all origins together. Active connections have no limit: in Node's agents a request
   * above a limit waits behind idle connections to other origins, and no signal can abort that wait.
   */
  idleMax: number;
}

/** The connection that an agent of Node requests. */
interface Wanted {
  host?: string | null | undefined;
  port?: number | string | null | undefined;
  servername?: string | undefined;
  /** An option of the request, which Node's agents pass on. */
  lookupOwner?: LookupOwner | undefined;
}

// Node's types require that the callback gets a socket even with an error, but Node's own code then passes none.
type Created = (error: Error | null, socket: Duplex) => void;

export class EgressAgent extends HttpAgent {
  readonly #options: EgressAgentOptions;

  constructor(options: EgressAgentOptions) {
    super(agentOptions(options));
    this.#options = options;
  }

  override createConnection(wanted: Wanted, created: Created): undefined {
    connectFor(wanted, this.#options).then(
      (socket) => created(null, socket),
      (error) => created(error, undefined as never),
    );
  }

  override keepSocketAlive(socket: Duplex): boolean {
    makeRoom(this, this.#options);
    // Node's types leave out that it answers.
    return super.keepSocketAlive(socket) as unknown as boolean;
  }
}

interface EgressTlsAgentOptions extends EgressAgentOptions {
  /** Certificate authorities in PEM format. By default those of Node are used. */
  ca?: string | undefined;
}

export class EgressTlsAgent extends HttpsAgent {
  readonly #options: EgressTlsAgentOptions;

  constructor(options: EgressTlsAgentOptions) {
    super(agentOptions(options));
    this.#options = options;
  }

  override createConnection(wanted: Wanted, created: Created): undefined {
    const { ca } = this.#options;
    // Empty for an IP address: RFC 6066 allows no server name for it.
    const { servername = "" } = wanted;
    connectFor(wanted, this.#options).then(
      (socket) => {
        const host = servername === "" ? (wanted.host ?? "") : servername;
        const secure = connectTls({
          ...{ socket, host, servername, ALPNProtocols: ["http/1.1"] },
          ...(ca && { ca }),
        });
        // A request gets its connection only after the TLS handshake, when it can be sent immediately. Until then the
        // request can still be cancelled.
        const fail = (error: Error) => created(error, undefined as never);
        const stall = () => secure.destroy(systemError("ETIMEDOUT", "nothing moved for too long"));
        secure.once("error", fail).setTimeout(EGRESS_IDLE_MS, stall);
        secure.once("secureConnect", () => {
          secure.off("error", fail).setTimeout(0, stall);
          created(null, secure);
        });
      },
      (error) => created(error, undefined as never),
    );
  }

  override keepSocketAlive(socket: Duplex): boolean {
    makeRoom(this, this.#options);
    // Node's types leave out that it answers.
    return super.keepSocketAlive(socket) as unknown as boolean;
  }
}

function agentOptions({ keepAlive }: EgressAgentOptions) {
  return { keepAlive, timeout: EGRESS_IDLE_MS };
}

/**
 * Makes room for one more idle connection. Closes idle connections above the limit, beginning with the first one of
 * the origin that has been in the list longest.
 */
function makeRoom({ freeSockets }: HttpAgent, { idleMax }: EgressAgentOptions): void {
  const idle = Object.values(freeSockets).flatMap((sockets = []) =>
    sockets.filter(({ destroyed }) => !destroyed),
  );
  for (const socket of idle.slice(0, Math.max(0, idle.length + 1 - idleMax))) socket.destroy();
}

function connectFor(
  { host, port, lookupOwner: owner }: Wanted,
  { guard, signal }: EgressAgentOptions,
) {
  return guard.connect({ host: host ?? "", port: Number(port) }, { signal, owner });
}
