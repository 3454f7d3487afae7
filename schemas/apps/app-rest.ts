/**
 * Calls of the platform's REST API by app code. The app's host sends a call to a gateway over the bus. The gateway
 * handles it like a request with a token of that app. No token is needed, because only hosts and gateways can write
 * to the bus.
 */
import { z } from "zod";
import { NamespaceName } from "../repositories/git-names.ts";
import { EpochMs, Id } from "../values.ts";
import { AppAnswer, AppRequest } from "./app-exchange.ts";
import { AppName } from "./app-names.ts";

/** Core subject. Gateways subscribe to it as a queue group, so exactly one of them answers. */
export const APP_REST_SUBJECT = "app-rest";
export const APP_REST_QUEUE = "gateways";

export const AppRestRequest = z.object({
  accountId: Id,
  app: AppName,
  /**
   * The app's only permission in this call: `artifacts` stands for artifacts.write, `browser` for
   * browser-rendering.write.
   */
  permission: z.enum(["artifacts", "browser"]),
  /**
   * The only namespace of repositories that the call may access. A call with `artifacts` but without a namespace can
   * access none.
   */
  namespace: NamespaceName.optional(),
  /**
   * The URL is `http://trunkline/<path and query>`. The gateway calls that path below `/v4/accounts/{accountId}`, or
   * below `/git/{accountId}` for `/git/`.
   */
  request: AppRequest,
  /** Time after which the app's host no longer waits for the response. */
  deadlineAt: EpochMs,
});
export type AppRestRequest = z.infer<typeof AppRestRequest>;

/** The HTTP response, also for errors. A body in a blob expires after some minutes. */
export const AppRestAnswer = AppAnswer;
export type AppRestAnswer = z.infer<typeof AppRestAnswer>;
