/**
 * Health check of containers: exits with 0 if the URL in its argument answers with status 200. Default: /healthz of
 * this machine.
 */
const { TRUNKLINE_PORT: port = "8787" } = process.env;
const [url = `http://127.0.0.1:${port}/healthz`] = process.argv.slice(2);
const WAIT_MS = 5_000;

try {
  const response = await fetch(url, { signal: AbortSignal.timeout(WAIT_MS) });
  if (!response.ok) fail(`${response.status} ${await response.text()}`);
} catch (error) {
  fail(error instanceof Error ? String(error.cause ?? error.message) : String(error));
}

function fail(reason: string): void {
  console.error(`Cannot call ${url} healthy: ${reason}`);
  process.exitCode = 1;
}
