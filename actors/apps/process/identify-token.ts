/** Requests the identity of a token's owner from the host. */
import { running } from "../package/current-agent.ts";
import type { IdentifyToken } from "../package/tokens.ts";
import type { HostLink } from "./host-link.ts";

export function tokenIdentifier(link: HostLink): IdentifyToken {
  return async (token) => {
    const { open } = running() ?? {};
    const result = await link.operate(
      { type: "identify", token },
      open && { number: open.number, after: open.gate.after() },
    );
    return result.type === "identified" ? (result.identity ?? null) : null;
  };
}
