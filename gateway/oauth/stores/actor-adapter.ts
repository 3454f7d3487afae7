/** Maps each model of oidc-provider to the store that keeps it in actors. */
import type { Adapter } from "oidc-provider";
import { clientStore } from "./client-store.ts";
import { grantStore } from "./grant-store.ts";
import { interactionStore } from "./interaction-store.ts";
import { type StoreParts, store } from "./library-store.ts";
import { sessionStore } from "./session-store.ts";
import { tokenStore } from "./token-store.ts";

export function actorAdapter(parts: StoreParts): (model: string) => Adapter {
  const stores: Record<string, () => Adapter> = {
    Client: () => clientStore(parts),
    Grant: () => grantStore(parts),
    Session: () => sessionStore(parts),
    Interaction: () => interactionStore(parts),
    AuthorizationCode: () => tokenStore(parts, "code"),
    AccessToken: () => tokenStore(parts, "access"),
    RefreshToken: () => tokenStore(parts, "refresh"),
  };
  // Models of features that are switched off store nothing.
  return (model) => stores[model]?.() ?? store({});
}
