/**
 * Loaded into a process by `FakeTime` before its program. Replaces `Date` by one whose time of day is ahead of the
 * machine's by the seconds in the file FAKETIME_TIMESTAMP_FILE. Monotonic clocks do not change.
 */
import { readFileSync } from "node:fs";

/** The file is read again after this time: reading it for each date would take more time than the dates. */
const READ_AGAIN_MS = 20;

const path = process.env.FAKETIME_TIMESTAMP_FILE ?? "";
const MachineDate = Date;
let readAt = Number.NEGATIVE_INFINITY;
let aheadMs = 0;

function now(): number {
  const at = performance.now();
  if (at - readAt > READ_AGAIN_MS) {
    readAt = at;
    const text = readFileSync(path, "utf8");
    // The file is empty for a moment while it is written.
    if (text !== "") aheadMs = Number(text) * 1_000;
  }
  return MachineDate.now() + aheadMs;
}

globalThis.Date = new Proxy(MachineDate, {
  construct: (target, parameters, newTarget) =>
    Reflect.construct(target, parameters.length === 0 ? [now()] : parameters, newTarget),
  apply: () => new MachineDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
