/** Ends endless commands: at Ctrl-C, at a signal to end, or when the output has no reader. */

export function untilStopped(): AbortSignal {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, stop);
  process.stdout.on("error", stop);
  return stopping.signal;
}
