/** The dependencies of the authorization server. */
import type { ErrorOut, KoaContextWithOIDC } from "oidc-provider";
import type { Logger } from "pino";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { FailedAuthentications } from "../../account/failed-authentications.ts";
import type { CookieNames } from "../../account/pages/browser-cookies.ts";
import type { KnownIntrospections } from "../tokens/known-introspections.ts";

export interface ProviderParts {
  actors: ActorClient;
  logger: Logger;
  publicUrl: string;
  cookies: CookieNames;
  now: () => number;
  /** Limits the refreshes of an account or a person in REQUEST_WINDOW_MS; 0 means no limit. */
  requestsPerWindow: number;
  /** Records the responses to introspections. */
  introspections: Pick<KnownIntrospections, "record">;
  /** Counts failed authentications of programs. The login guard counts failed sign-ins of people. */
  failed: FailedAuthentications;
  /** Functions that render pages for a person. Each sets the body of the answer. */
  pages: {
    /** `target` is the address of the page's continue link. */
    error(context: KoaContextWithOIDC, error: ErrorOut, target?: URL): void;
    confirmLogout(context: KoaContextWithOIDC, secret: string): void;
    loggedOut(context: KoaContextWithOIDC, target?: URL): void;
  };
}
