/**
 * Node's timers for the platform's own use: code of the app may replace the global ones, and those wait at its
 * agents' input gates.
 */

export const { setTimeout, clearTimeout, setImmediate } = globalThis;
