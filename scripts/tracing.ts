/** Sends spans to an OTLP/HTTP receiver. The SDK is loaded only here, so that it costs nothing while traces are off. */
import { TRACE_EXPORT_MS } from "../schemas/limits.ts";

export interface Tracing {
  /** Sends what is left. */
  stop(): Promise<void>;
}

export async function startTracing(endpoint: string): Promise<Tracing> {
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace-node"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]);
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/$/, "")}/v1/traces`,
    timeoutMillis: TRACE_EXPORT_MS,
  });
  const provider = new sdk.NodeTracerProvider({
    resource: resourceFromAttributes({ "service.name": "trunkline" }),
    spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
  });
  // Also sets the W3C propagators, which the actor client hands spans on with.
  provider.register();
  return {
    async stop() {
      await provider.shutdown();
      api.trace.disable();
      api.context.disable();
      api.propagation.disable();
    },
  };
}
