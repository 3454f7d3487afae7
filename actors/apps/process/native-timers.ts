/**
 * Node's timers for the platform's own use. The global timers are replaced for app code, so that they wait at agents'
 * input gates.
 */

export const { setTimeout, clearTimeout, setImmediate } = globalThis;
