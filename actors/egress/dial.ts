/** Connects to the first of several checked addresses that accepts a connection. */
import { connect, isIPv6, type Socket } from "node:net";

/** Time after which a parallel attempt to the next address of a name starts (RFC 8305, section 8). */
const EGRESS_ATTEMPT_MS = 250;

interface DialOptions {
  /** IP addresses, best first. This module never resolves a name. */
  addresses: readonly string[];
  port: number;
  /**
   * Whether the socket stays writable after the other side has ended its stream. Tunnels need this: they forward the
   * end themselves.
   */
  allowHalfOpen: boolean;
  signal: AbortSignal;
  /** Time after which the next address is tried in parallel with the earlier ones. */
  attemptMs?: number;
}

/**
 * Implements Happy Eyeballs (RFC 8305): attempts start one after the other, the first connection wins, and all other
 * attempts are cancelled.
 */
export function dial(options: DialOptions): Promise<Socket> {
  const { port, allowHalfOpen, signal, attemptMs = EGRESS_ATTEMPT_MS } = options;
  const waiting = interleaveFamilies(options.addresses);
  const attempts = new Set<Socket>();
  const errors: Error[] = [];
  let timer: NodeJS.Timeout | undefined;

  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    attemptNext();

    function attemptNext() {
      clearTimeout(timer);
      const host = waiting.shift();
      if (host === undefined) return;
      const socket = connect({ host, port, allowHalfOpen, noDelay: true });
      attempts.add(socket);
      socket.once("connect", () => win(socket));
      socket.once("error", (error) => lose(socket, error));
      if (waiting.length > 0) timer = setTimeout(attemptNext, attemptMs);
    }

    function win(socket: Socket) {
      attempts.delete(socket);
      release();
      socket.removeAllListeners("error");
      resolve(socket);
    }

    function lose(socket: Socket, error: Error) {
      attempts.delete(socket);
      errors.push(error);
      if (waiting.length > 0) return attemptNext();
      if (attempts.size > 0) return;
      release();
      reject(mostTelling(errors));
    }

    function abort() {
      release();
      reject(signal.reason);
    }

    function release() {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      waiting.length = 0;
      for (const socket of attempts) socket.removeAllListeners().on("error", ignore).destroy();
      attempts.clear();
    }
  });
}

/**
 * Alternates between IPv4 and IPv6 addresses, beginning with the family of the first address. If one family is
 * unreachable, that costs only one attempt.
 */
function interleaveFamilies(addresses: readonly string[]): string[] {
  const leading = isIPv6(addresses[0] ?? "");
  const first = addresses.filter((address) => isIPv6(address) === leading);
  const second = addresses.filter((address) => isIPv6(address) !== leading);
  return first
    .flatMap((address, index) => [address, ...second.slice(index, index + 1)])
    .concat(second.slice(first.length));
}

/**
 * Chooses the error to report. A machine without IPv6 fails immediately for IPv6 addresses, so a refused connection
 * of the other family is more useful.
 */
function mostTelling(errors: readonly Error[]): Error | undefined {
  return errors.find((error) => "code" in error && error.code === "ECONNREFUSED") ?? errors.at(-1);
}

function ignore() {
  // A cancelled attempt may still fail; no caller waits for its error.
}
