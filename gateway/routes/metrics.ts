/** Figures of this process, for Prometheus. */
import { Router } from "express";
import type { Registry } from "prom-client";
import { methodNotAllowed } from "../middleware/method-not-allowed.ts";

export function metricsRouter(registry: Registry): Router {
  const router = Router({ caseSensitive: true });
  router.get("/metrics", async (_request, response) => {
    const text = await registry.metrics();
    response.set("Content-Type", registry.contentType).send(text);
  });
  router.all("/metrics", methodNotAllowed(["GET"]));
  return router;
}
