/** Ends what would go on for ever: by Ctrl-C, by a signal to end, or when nobody reads the output any more. */

export function untilStopped(): AbortSignal {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, stop);
  process.stdout.on("error", stop);
  return stopping.signal;
}
