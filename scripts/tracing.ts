/** Sends spans to an OTLP/HTTP receiver. The SDK is loaded only here, so that it costs nothing while traces are off. */

/** A receiver of traces that does not answer holds up a stop no longer than this. */
const TRACE_EXPORT_MS = 3_000;

interface Tracing {
  /** Sends the remaining spans. */
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
  // This also sets the W3C propagators, with which the actor client passes spans on.
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
