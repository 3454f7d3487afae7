/**
 * Returns the key of a line of the log. The id alone is no key: a line that marks dropped lines has the id of the line
 * before it. The time alone is no key either: that line has the time of the line after it.
 */
export const lineKey = ({ id, time }: { id: number; time: string }) => `${id} ${time}`;
