/** Asks a server of the cluster whether any of its clients is subscribed to a subject. */
import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { isSilence } from "./ask.ts";
import type { Bus } from "./bus.ts";

/** All servers answer it, each for its own connections of this process's account. */
const CONNECTIONS = "$SYS.REQ.ACCOUNT.PING.CONNZ";

const Connections = z.object({
  server: z.object({ id: z.string() }),
  data: z.object({ num_connections: z.number() }).optional(),
});

/**
 * Returns false if the server with this id has no connection whose client is subscribed to the subject. Returns
 * undefined if that server does not answer in time, or may not be asked.
 */
export async function isSubscribedAt(
  bus: Bus,
  server: string,
  subject: string,
  { timeoutMs }: { timeoutMs: number },
): Promise<boolean | undefined> {
  if (bus.isAway) return undefined;
  const query = JSON.stringify({ filter_subject: subject, limit: 1 });
  const isItsAnswer = (message: Msg) => read(message)?.server.id === server;
  try {
    const answers = await bus.requests.askForMany(CONNECTIONS, query, isItsAnswer, { timeoutMs });
    const last = answers.at(-1);
    const connections = last && read(last)?.data?.num_connections;
    return connections === undefined ? undefined : connections > 0;
  } catch (error) {
    if (isSilence(error)) return undefined;
    throw error;
  }
}

const read = (message: Msg) => Connections.safeParse(message.json()).data;
