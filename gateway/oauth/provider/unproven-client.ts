/** Requires consent each time for clients that cannot prove their identity. */
import { hasOwnScheme } from "../../../schemas/oauth/client-uris.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../../schemas/oauth/command-line.ts";
import { interactionPolicy } from "../library/oidc-library.ts";

/**
 * RFC 8252 section 8.6: a client that proves nothing is asked for anew, since another may have its id. An https address
 * is proof; a scheme that any app may claim is none. On the person's own machine every program can have the address, as
 * well as what the client keeps there, so it is remembered as others are: but for the command line, whose id is public
 * and the same everywhere.
 */
export function unprovenClientCheck() {
  const { Check } = interactionPolicy;
  const text = "an application that cannot prove who it is needs the person's consent each time";
  return new Check("unproven_client", text, "interaction_required", ({ oidc }) => {
    const isOwnScheme = hasOwnScheme(String(oidc.params?.redirect_uri));
    const isUnproven = isOwnScheme || oidc.client?.clientId === COMMAND_LINE_CLIENT_ID;
    const isDecided = oidc.result?.consent !== undefined;
    return oidc.client?.clientAuthMethod === "none" && isUnproven && !isDecided
      ? Check.REQUEST_PROMPT
      : Check.NO_NEED_TO_PROMPT;
  });
}
