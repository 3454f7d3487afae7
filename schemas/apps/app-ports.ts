/**
 * Messages of the actor that assigns ports to apps on a single machine. Each port is a separate origin. The key is
 * APP_PORTS.
 */
import { z } from "zod";
import { defineContract } from "../contract.ts";
import { Id } from "../values.ts";
import { AppName } from "./app-names.ts";

export const APP_PORTS = "main";

const Port = z.int().min(1).max(65_535);

/** Random text that no page can guess, in lower case. The names of the app's cookies contain it. */
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
     * Returns the app's port. Assigns a new port if the app has none, or if its port is outside the range or in
     * `taken`, the ports that other programs use. Refuses with `limit_reached` if every port of the range is assigned
     * or taken.
     */
    assign: {
      input: z.object({
        accountId: Id,
        app: AppName,
        /** This key is stored only if the app has no cookie key yet. */
        cookieKey: CookieKey,
        range: PortRange,
        taken: z.array(Port),
      }),
      reply: AppPort.extend({ isNew: z.boolean() }),
    },
    /** Frees the port of an app, because all data of the app was deleted or its first deploy was refused. */
    released: { input: z.object({ accountId: Id, app: AppName }) },
    list: { input: z.object({}), reply: z.object({ ports: z.array(AppPort) }) },
  },
});
