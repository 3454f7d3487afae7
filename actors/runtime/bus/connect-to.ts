/** Connects to the servers of the bus as one of its users. */
import { connect, credsAuthenticator, type NatsConnection } from "@nats-io/transport-node";
import { BUS_CONNECT_MS } from "../../../schemas/limits.ts";
import { inboxesOf } from "../../../schemas/subjects.ts";
import { readBusAddress } from "./bus-address.ts";
import { busAuthenticator } from "./bus-key.ts";
import { type BusTls, connectProblem, isLateLogin, tlsOptions } from "./bus-tls.ts";

export interface ConnectOptions {
  /** The URLs of all servers, separated by commas; they may hold user and password. */
  url: string;
  /** Contents of a NATS credentials file. */
  credentials?: string;
  /** NKey seed of the user, instead of a password. */
  nkey?: string;
  /** The role of this user. Answers to the user's requests arrive on subjects that no other role may subscribe to. */
  role?: string;
  tls?: BusTls;
  /** Shown by `nats server report connections`. */
  name: string;
}

/**
 * Attempts of a login that reaches the server too late. The server waits about 2 s for it, and a busy machine may stop
 * a process for longer.
 */
const LATE_LOGINS_MAX = 5;

/** Connects to the bus. Rejects with one line that names the servers but no password. */
export async function connectTo(login: ConnectOptions): Promise<NatsConnection> {
  for (let tries = 1; ; tries++) {
    try {
      return await connectOnce(login);
    } catch (error) {
      const isLate = error instanceof Error && isLateLogin(error.cause);
      if (!isLate || tries >= LATE_LOGINS_MAX) throw error;
    }
  }
}

async function connectOnce(login: ConnectOptions): Promise<NatsConnection> {
  const { servers, ...password } = readBusAddress(login.url);
  const tls = tlsOptions(login.tls, servers);
  const connection = await connect({
    servers,
    ...authenticationOf(login, password),
    name: login.name,
    inboxPrefix: inboxesOf(login.role).answers,
    ...(tls && { tls }),
    // Ignore servers that the cluster announces. Otherwise servers that refuse the password announce each other, the
    // pool of servers never empties, and the first connection is retried forever, a thousand times a second.
    ignoreClusterUpdates: true,
    // By default the library stops reconnecting after 20 s, and detects a half-open link only after minutes.
    maxReconnectAttempts: -1,
    // Keeps reconnecting also while passwords change: by default the library closes a connection that is refused twice.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 100,
    reconnectJitter: 50,
    pingInterval: 2_000,
    maxPingOut: 2,
    timeout: BUS_CONNECT_MS,
    // A stack trace for each request would reduce the requests per second by a third.
    noAsyncTraces: true,
  }).catch((cause: unknown) => {
    const at = servers.join(",");
    throw new Error(`Cannot connect to the bus at ${at}: ${connectProblem(cause)}`, { cause });
  });
  // Sets all servers again: the library (3.4.0) removes each server that did not answer the first connection.
  connection.setServers(servers);
  return connection;
}

function authenticationOf(
  { credentials, nkey }: Pick<ConnectOptions, "credentials" | "nkey">,
  password: { user?: string; pass?: string },
) {
  if (nkey !== undefined) return { authenticator: busAuthenticator(nkey.trim()) };
  if (credentials) {
    const bytes = new TextEncoder().encode(credentials.trim());
    return { ...password, authenticator: credsAuthenticator(bytes) };
  }
  return password;
}
