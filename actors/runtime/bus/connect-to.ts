/** Connects to the servers of the bus as one of its users. */
import {
  connect,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
} from "@nats-io/transport-node";
import { BUS_CONNECT_MS } from "../../../schemas/limits.ts";
import { inboxesOf } from "../../../schemas/subjects.ts";
import { readBusAddress } from "./bus-address.ts";
import { busAuthenticator } from "./bus-key.ts";
import { type BusTls, connectProblem, isLoginTimeout, tlsOptions } from "./bus-tls.ts";

/**
 * A server closes a new connection that has not logged in after 2 s. A process that stands still for longer, because
 * its machine is busy, tries again.
 */
const LOGIN_TRIES_MAX = 5;

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

/** Connects to the bus. Rejects with one line that names the servers but no password. */
export async function connectTo(login: ConnectOptions): Promise<NatsConnection> {
  const { servers, ...password } = readBusAddress(login.url);
  const tls = tlsOptions(login.tls, servers);
  const connection = await connectInTime({
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

async function connectInTime(options: NodeConnectionOptions): Promise<NatsConnection> {
  for (let tries = 1; ; tries++) {
    try {
      return await connect(options);
    } catch (error) {
      if (!isLoginTimeout(error) || tries === LOGIN_TRIES_MAX) throw error;
    }
  }
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
