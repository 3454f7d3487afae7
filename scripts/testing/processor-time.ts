/** Time that a test's own work takes the processor: what else the machine does meanwhile does not count. */

/** Starts to count; call what it returns for the milliseconds since, of this thread alone. */
export function processorTime(): () => number {
  const before = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  };
}

const LOOK_MS = 10;

/**
 * Starts to watch; call what it returns, once, for the longest that this thread has worked without looking at its
 * timers.
 */
export function longestTurn(): () => number {
  let longestMs = 0;
  let turn = processorTime();
  const look = () => {
    longestMs = Math.max(longestMs, turn());
    turn = processorTime();
  };
  const timer = setInterval(look, LOOK_MS);
  return () => {
    look();
    clearInterval(timer);
    return longestMs;
  };
}
