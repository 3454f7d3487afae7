/** Makes an HTTP server listen at the configured address, or explains in one line why it cannot. */
import { once } from "node:events";
import type { Server } from "node:http";

/**
 * Resolves with the port. With port 0 the system chooses a free one. `setting` is the name of the setting that chose
 * the port.
 */
export async function listen(
  server: Server,
  { host, port, setting = "TRUNKLINE_PORT" }: { host: string; port: number; setting?: string },
): Promise<number> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? error.code : error;
    const what =
      reason === "EADDRINUSE" ? `the port is in use, ${setting} chooses another` : String(reason);
    throw new Error(`Cannot listen on ${host}:${port}: ${what}`, { cause: error });
  }
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("Cannot listen: no port");
  return address.port;
}
