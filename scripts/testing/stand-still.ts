/** How long this process stood still, as it does with all others on a machine that somebody else has for a while. */

const LOOK_MS = 20;
/** Being this late is what a busy process is now and then; it does not count. */
const LATE_MS = 400;

/** Starts to watch; call what it returns, once, for the milliseconds in all. */
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
