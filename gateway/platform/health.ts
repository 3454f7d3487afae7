/** Health endpoints for load balancers and for people who just started the platform. */
import { Router } from "express";
import { ERRORS } from "../../schemas/errors.ts";
import { failure, success } from "../http/envelope.ts";
import { methodNotAllowed } from "../http/middleware/method-not-allowed.ts";

/**
 * Serves /healthz (200 if the process can handle requests) and /livez (always 200, if the process answers). `missing`
 * names the parts that are not ready. While a process stops, /healthz answers 503, so that load balancers send no
 * more requests.
 */
export function healthRouter(
  missing: () => readonly string[],
  isStopping: () => boolean = () => false,
): Router {
  const router = Router({ caseSensitive: true });
  router.get("/healthz", (_request, response) => {
    const reasons = missing().map((name) => `${name} is missing`);
    if (isStopping()) reasons.unshift("this process is stopping");
    const [first, ...others] = reasons.map((reason) => ({
      code: ERRORS.unavailable.code,
      message: `Cannot serve: ${reason}`,
    }));
    if (!first) response.json(success({ ready: true }));
    else
      response
        .status(503)
        .set("Retry-After", "1")
        .json(failure([first, ...others]));
  });
  router.get("/livez", (_request, response) => void response.json(success({ alive: true })));
  router.all("/livez", methodNotAllowed(["GET"]));
  router.all("/healthz", methodNotAllowed(["GET"]));
  return router;
}
