/**
 * Node's timers for the platform's own use. App code may replace the global timers, and those wait at agents' input
 * gates.
 */

export const { setTimeout, clearTimeout, setImmediate } = globalThis;
