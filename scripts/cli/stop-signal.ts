/**
 * Returns a signal for commands that otherwise run forever. It aborts at Ctrl-C, at a termination signal, or when the
 * reader of the output has exited.
 */

export function untilStopped(): AbortSignal {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, stop);
  process.stdout.on("error", stop);
  return stopping.signal;
}
