/** Returns the first two tokens of a subject, the key for lookups of a process's listeners. */
export function firstTwoTokens(subject: string): string {
  const end = subject.indexOf(".", subject.indexOf(".") + 1);
  return end < 0 ? subject : subject.slice(0, end);
}
