/** Formats the time since `at` for people: `0.4 s`, `17 s`, `5 min`, `3 h`, `12 days`. */
export function age(at: Date, now = Date.now()): string {
  // Clocks of two machines may differ, so `at` may lie in the future.
  const seconds = Math.max(0, now - at.getTime()) / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 120) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  return hours < 48 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} days`;
}
