/**
 * Calls of the platform's REST API by code of an app. Its host asks a gateway over the bus, which acts as for a
 * client with a token of that app. No token is needed, because only hosts and gateways can write to the bus.
 */
import { z } from "zod";
import { NamespaceName } from "../repositories/git-names.ts";
import { EpochMs, Id } from "../values.ts";
import { AppAnswer, AppRequest } from "./app-exchange.ts";
import { AppName } from "./app-names.ts";

/** Core subject; gateways share it as a queue group, and one of them answers. */
export const APP_REST_SUBJECT = "app-rest";
export const APP_REST_QUEUE = "gateways";

export const AppRestRequest = z.object({
  accountId: Id,
  app: AppName,
  /**
   * The app's permission: `artifacts` means artifacts.write, `browser` means browser-rendering.write, and no more.
   */
  permission: z.enum(["artifacts", "browser"]),
  /** The one namespace of repositories that the call may reach; a call with `artifacts` and without it reaches none. */
  namespace: NamespaceName.optional(),
  /** The path and query of its URL are below `/v4/accounts/{accountId}`; scheme and host say nothing. */
  request: AppRequest,
  /** Time after which nobody waits. */
  deadlineAt: EpochMs,
});
export type AppRestRequest = z.infer<typeof AppRestRequest>;

/** The HTTP answer, errors included. A body that is a blob has a time to live, and its reader removes it. */
export const AppRestAnswer = AppAnswer;
export type AppRestAnswer = z.infer<typeof AppRestAnswer>;
