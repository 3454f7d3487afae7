/**
 * Checks that the configured address is free. Runs before the other parts start. Otherwise they would have to stop
 * again if the address is in use.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { listen } from "../gateway/http/listen.ts";

/** Error codes for an unknown host name, and for an address that this machine does not have. */
const WRONG_HOST = new Set(["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EADDRNOTAVAIL", "EINVAL"]);

/** Throws a one-line error that names the setting to change. */
export async function checkListening(at: { host: string; port: number }): Promise<void> {
  const server = createServer();
  try {
    await listen(server, at);
  } catch (error) {
    const expected = "a name or an address of this machine";
    if (WRONG_HOST.has(codeOf(error)))
      throw new Error(`TRUNKLINE_HOST: expected ${expected}, found "${at.host}"`, { cause: error });
    if (codeOf(error) === "EACCES")
      throw new Error(
        `TRUNKLINE_PORT: expected a port that this user may take, found "${at.port}"`,
        { cause: error },
      );
    throw error;
  }
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

/** Returns the system's error code. `listen` stores it in the cause of its error. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}
