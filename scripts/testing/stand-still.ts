/**
 * Measures how long this process did not run, for example because other tenants of the machine used its processors.
 */

const LOOK_MS = 20;
/** Timers of a busy process are late by up to this time. Such delays do not count. */
const LATE_MS = 400;

/**
 * Starts a measurement. The returned function ends it and returns the total time in ms in which the process did not
 * run. Call it only once.
 */
export function standStill(): () => number {
  let stillMs = 0;
  let lookedAt = performance.now();
  const look = () => {
    const lateMs = performance.now() - lookedAt - LOOK_MS;
    if (lateMs > LATE_MS) stillMs += lateMs;
    lookedAt = performance.now();
  };
  const timer = setInterval(look, LOOK_MS);
  return () => {
    look();
    clearInterval(timer);
    return stillMs;
  };
}
