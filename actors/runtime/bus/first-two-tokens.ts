/** The first two tokens of a subject, by which listeners of a process are found. */
export function firstTwoTokens(subject: string): string {
  const end = subject.indexOf(".", subject.indexOf(".") + 1);
  return end < 0 ? subject : subject.slice(0, end);
}
