/** The contract of the ports that apps have on a single machine, each an origin of its own. The key is APP_PORTS. */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Id } from "../values.ts";
import { AppName } from "./app-names.ts";

export const APP_PORTS = "main";

const Port = z.int().min(1).max(65_535);

/** Random text that no page can guess, in lower case: it stands in the names of the app's cookies. */
const CookieKey = z.string().regex(/^[\da-f]{16}$/);

export const AppPort = z.object({
  accountId: Id,
  app: AppName,
  port: Port,
  cookieKey: CookieKey,
});
export type AppPort = z.infer<typeof AppPort>;

/** The ports that a gateway may open for apps, both ends included. */
export const PortRange = z.object({ first: Port, last: Port });
export type PortRange = z.infer<typeof PortRange>;

export const appPorts = defineContract({
  kind: "app-ports",
  messages: {
    /**
     * Returns the app's port, or assigns one: none of `taken`, which other programs use. `limit_reached` where every
     * port of the range is assigned or taken.
     */
    assign: {
      input: z.object({
        accountId: Id,
        app: AppName,
        /** Stored only if the app has no key yet. */
        cookieKey: CookieKey,
        range: PortRange,
        taken: z.array(Port),
      }),
      reply: AppPort.extend({ isNew: z.boolean() }),
    },
    /** The app is gone, with all that it kept. */
    released: { input: z.object({ accountId: Id, app: AppName }) },
    list: { input: z.object({}), reply: z.object({ ports: z.array(AppPort) }) },
  },
});
