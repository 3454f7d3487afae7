/** Measures the processor time of a test's own work, without the time of other processes. */

/** Starts a measurement. The returned function returns the processor time in ms that this thread has used so far. */
export function processorTime(): () => number {
  const before = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  };
}

const LOOK_MS = 10;

/**
 * Starts a measurement. The returned function ends it and returns the longest processor time in ms for which this
 * thread ran without checking its timers. Call it only once.
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
