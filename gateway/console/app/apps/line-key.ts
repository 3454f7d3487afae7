/**
 * Returns the key of a line of the log. A line that marks dropped lines has the id of the line before it and the time
 * of the line after it, so neither is a key alone.
 */
export const lineKey = ({ id, time }: { id: number; time: string }) => `${id} ${time}`;
