/** Requires consent each time for clients that cannot prove their identity. */
import { hasOwnScheme } from "../../../schemas/oauth/client-uris.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../../schemas/oauth/command-line.ts";
import { interactionPolicy } from "../library/oidc-library.ts";

/**
 * RFC 8252 section 8.6: a client without proof of identity needs consent each time, because another app may use its id.
 * An https redirect URI is proof; a custom scheme, which any app can claim, is none. Consent for a loopback address is
 * remembered: any local program could also read the client's tokens. The command line is excepted, because its id is
 * public and the same everywhere.
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
