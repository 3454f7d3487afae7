/** The store of sessions. */
import type { Adapter } from "oidc-provider";
import { PendingLogout, session } from "../../../schemas/account/session.ts";
import { sessionAddress } from "../../account/pages/browser-cookies.ts";
import { Provider } from "../library/oidc-library.ts";
import { recordsOf } from "../library/request-records.ts";
import { type StoreParts, seconds, store, unlessUnknown } from "./library-store.ts";
import { stillLeading } from "./registration-check.ts";

/**
 * Returns the store of sessions for oidc-provider. Our pages open the sessions. oidc-provider reads them, and stores
 * a sign-out that awaits confirmation.
 */
export function sessionStore({ actors }: Pick<StoreParts, "actors">): Adapter {
  return store({
    async find(text) {
      const { id, secretHash } = sessionAddress(text);
      const found = await unlessUnknown(actors.call(session, id, "get", { secretHash }));
      if (!found) return undefined;
      const { user, expiresAt, logout } = found;
      const records = recordsOf(Provider.ctx);
      records.email = user?.email;
      records.logout = logout;
      return {
        jti: text,
        kind: "Session",
        uid: id,
        exp: seconds(expiresAt),
        ...(user && { accountId: user.userId, loginTs: seconds(user.authenticatedAt) }),
        ...(logout && { state: await stillLeading(actors, logout) }),
      };
    },

    async upsert(text, { state, accountId }) {
      // Without a signed-in user there is no sign-out to confirm.
      if (accountId === undefined) return;
      const { id, secretHash } = sessionAddress(text);
      const records = recordsOf(Provider.ctx);
      if (JSON.stringify(state) === JSON.stringify(records.logout)) return;
      const logout = state && PendingLogout.parse(state);
      await unlessUnknown(
        actors.call(session, id, "awaitLogout", { secretHash, ...(logout && { logout }) }),
      );
    },

    async destroy(text) {
      await actors.call(session, sessionAddress(text).id, "end", {});
    },
  });
}
