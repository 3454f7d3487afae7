/** Starts a span for every request, as a child of the client's W3C traceparent. */
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { RequestHandler } from "express";
import { localsOf } from "../locals.ts";

export const traceRequests: RequestHandler = (request, response, next) => {
  const parent = propagation.extract(context.active(), request.headers);
  const tracer = trace.getTracer("trunkline");
  const span = tracer.startSpan(request.method, { kind: SpanKind.SERVER }, parent);
  const active = trace.setSpan(parent, span);
  response.once("close", () => {
    const { route, requestId } = localsOf(response);
    if (route) span.updateName(`${request.method} ${route.path}`);
    span.setAttributes({
      "http.request.method": request.method,
      "http.response.status_code": response.statusCode,
      ...(route ? { "http.route": route.path } : {}),
      "trunkline.request_id": requestId,
    });
    if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  });
  context.with(active, next);
};
