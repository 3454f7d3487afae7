/** Time that a test's own work takes the processor: what else the machine does meanwhile does not count. */

/** Starts to count; call what it returns for the milliseconds since, of this thread alone. */
export function processorTime(): () => number {
  const before = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  };
}
