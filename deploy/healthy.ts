/** For health checks of containers: ends well when the URL on its command line answers that all is well. */
const [url = ""] = process.argv.slice(2);
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
