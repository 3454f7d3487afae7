/** The store of authorization requests that wait for a person. */
import type { Adapter } from "oidc-provider";
import { interaction } from "../../../schemas/oauth/interaction.ts";
import { browserHashOf } from "../../account/pages/browser-cookies.ts";
import { sha256 } from "../../http/sha256.ts";
import { Provider } from "../library/oidc-library.ts";
import { type StoreParts, store, unlessUnknown } from "./library-store.ts";
import { checkWaiting } from "./registration-check.ts";

/** Only the browser that began an authorization request can read it. */
export function interactionStore({ actors, now }: Omit<StoreParts, "failed">): Adapter {
  const browserHash = () => {
    const context = Provider.ctx;
    return context ? browserHashOf(context.req) : sha256("");
  };
  return store({
    async find(uid) {
      const asked = actors.call(interaction, uid, "get", { browserHash: browserHash() });
      const { record } = (await unlessUnknown(asked)) ?? {};
      if (record) await checkWaiting(actors, record);
      return record;
    },
    async upsert(uid, payload, expiresIn = 0) {
      await actors.call(interaction, uid, "put", {
        browserHash: browserHash(),
        record: { ...payload, session: undefined },
        expiresAt: now() + expiresIn * 1_000,
      });
    },
    async destroy(uid) {
      await actors.call(interaction, uid, "end", {});
    },
  });
}
