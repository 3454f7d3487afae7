/** Requires consent each time for clients that cannot prove their identity. */
import { hasOwnScheme } from "../../../schemas/oauth/client-uris.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../../schemas/oauth/command-line.ts";
import { interactionPolicy } from "../library/oidc-library.ts";

/**
 * RFC 8252 section 8.6: a client that cannot prove its identity needs consent each time, because another app may use
 * its id. An https redirect URI proves the identity. A custom scheme does not, because any app can claim it. Consent
 * for a loopback address is remembered, because another local program could read the client's tokens anyway. The
 * command line always needs consent, because its id is public and the same on every platform.
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
