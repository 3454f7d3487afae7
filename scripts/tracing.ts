/**
 * Sends traces to an OTLP/HTTP receiver. The OpenTelemetry SDK is loaded only here, so that it costs nothing while
 * traces are off.
 */

/**
 * Timeout for an export, so that a receiver that does not answer delays the stop of the process no longer than this.
 */
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
  // `register` also sets the W3C propagators, with which the actor client passes trace ids to other processes.
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
