/** The parts of a handler's context that every actor of a host shares. */
import { randomUUID } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import { readSteady } from "../lib/steady-clock.ts";
import { currentTrace } from "../lib/trace.ts";
import type { HandlerContext } from "./define-actor.ts";

export const hostContext = (clock: Clock): Omit<HandlerContext, "key" | "rows"> => ({
  ...{ now: clock.now(), clock: clock.id },
  steady: () => readSteady(clock),
  // `randomUUID` reads random bytes for many ids in one system call; `randomBytes(16)` makes one for each id.
  newId: () => randomUUID().replaceAll("-", ""),
  trace: currentTrace,
});
