/** The users of the bus. */

/**
 * The users of the bus: one for each role of a process, `operator` for people who only read, and `admin` for people
 * who make changes.
 */
export const BUS_USERS = ["gateway", "actors", "browser", "operator", "admin"] as const;
export type BusUserName = (typeof BUS_USERS)[number];
