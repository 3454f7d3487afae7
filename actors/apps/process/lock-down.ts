/** Removes functions that the platform no longer needs from the process, so that app code cannot get them. */
import { EventEmitter } from "node:events";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { freezeIntrinsics } from "./freeze-intrinsics.ts";
import safeProcess from "./safe-process.ts";

/** Methods that are removed from the real `process`, in case app code ever reaches it. */
const TAKEN = [
  "_debugEnd",
  "_debugProcess",
  "_getActiveHandles",
  "_getActiveRequests",
  "_kill",
  "_linkedBinding",
  "_rawDebug",
  "_startProfilerIdleNotifier",
  "_stopProfilerIdleNotifier",
  "abort",
  "binding",
  "chdir",
  "dlopen",
  "execve",
  "getBuiltinModule",
  "initgroups",
  "kill",
  "loadEnvFile",
  "mainModule",
  "openStdin",
  "permission",
  "report",
  "send",
  "setegid",
  "seteuid",
  "setgid",
  "setgroups",
  "setuid",
  "stderr",
  "stdin",
  "stdout",
  "umask",
];
/**
 * Methods that are removed from databases. At this time the guards are set, and no code may open another database
 * through an open one.
 */
const TAKEN_FROM_DATABASES = [
  "aggregate",
  "applyChangeset",
  "constructor",
  "createSession",
  "createTagStore",
  "deserialize",
  "enableDefensive",
  "enableLoadExtension",
  "function",
  "loadExtension",
  "location",
  "open",
  "serialize",
  "setAuthorizer",
];

export function lockDown(): void {
  freezeIntrinsics();
  const real = globalThis.process;
  for (const name of TAKEN) Reflect.deleteProperty(real, name);
  // Node reads optional properties of this object and emits incoming messages on it. App code that could change the
  // object could intercept them.
  const emitter = Object.getOwnPropertyDescriptors(EventEmitter.prototype);
  Object.setPrototypeOf(real, Object.freeze(Object.create(null, emitter)));
  Object.defineProperty(real, "emit", { value: real.emit, writable: false, configurable: false });
  for (const name of TAKEN_FROM_DATABASES) Reflect.deleteProperty(DatabaseSync.prototype, name);
  Reflect.deleteProperty(StatementSync.prototype, "constructor");
  Object.defineProperty(globalThis, "process", {
    value: safeProcess,
    writable: true,
    configurable: true,
  });
}
