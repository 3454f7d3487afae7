/**
 * Starts the child processes of a gateway: `spawner-main <socket>`. The system pauses a parent process while it
 * copies the parent's page tables for a child. The spawner is a small process, so its copy takes almost no time.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname, isAbsolute } from "node:path";
import { GIT_STDERR_CHARS_MAX } from "../../../schemas/repositories/limits.ts";
import {
  type ChildCommand,
  endGroup,
  GIT_SPAWNER_PLACES,
  placeLine,
  type SpawnerNews,
  type SpawnerOrder,
} from "./spawner-wire.ts";

interface Place {
  input: Socket;
  output: Socket;
}

const [path = ""] = process.argv.slice(2);
// At its end this process removes the folder of the socket. Without a path it would remove the current folder.
if (!isAbsolute(path)) throw new Error("Usage: spawner-main <socket>");
const folder = dirname(path);
const places = new Map<number, Place>();
const running = new Map<number, ChildProcess>();
let lastPlace = 0;

// Ignores these signals: this process ends with its gateway, which finishes its work after a signal.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
process.on("disconnect", leave);
process.on("message", (order: SpawnerOrder) => {
  if ("end" in order) endGroup(running.get(order.place)?.pid);
  else start(order.place, order.command);
});
// The gateway may have ended before this process was ready.
if (!process.connected) leave();
await Promise.all(Array.from({ length: GIT_SPAWNER_PLACES }, makePlace)).catch(leave);

function leave(): void {
  for (const { pid } of running.values()) endGroup(pid);
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
}

/**
 * Opens a pair of connections for a later child. This process reads nothing from them, because their content is only
 * for the child.
 */
async function makePlace(): Promise<void> {
  lastPlace += 1;
  const place = lastPlace;
  const [input, output] = [connect(path).pause(), connect(path).pause()];
  const lost = () => {
    places.delete(place);
    for (const socket of [input, output]) socket.destroy();
  };
  for (const socket of [input, output]) socket.on("error", lost);
  places.set(place, { input, output });
  await Promise.all([once(input, "connect"), once(output, "connect")]);
  input.write(placeLine(place, "input"));
  output.write(placeLine(place, "output"));
}

function start(place: number, { file, parameters, cwd, environment }: ChildCommand): void {
  const sockets = places.get(place);
  places.delete(place);
  if (!sockets) {
    notifyParent({ place, code: null, stderr: "its connections are gone" });
    return;
  }
  const child = spawn(file, parameters, {
    cwd,
    env: environment,
    stdio: [sockets.input, sockets.output, "pipe"],
    detached: true,
  });
  // The child has its own copies of the sockets and closes them, so this process closes its copies.
  sockets.input.destroy();
  sockets.output.destroy();
  running.set(place, child);
  if (child.pid !== undefined) notifyParent({ place, pid: child.pid });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-GIT_STDERR_CHARS_MAX);
  });
  let isOver = false;
  const reportExit = (code: number | null, said: string) => {
    if (isOver) return;
    isOver = true;
    running.delete(place);
    notifyParent({ place, code, stderr: said });
  };
  child.once("error", ({ message }) => reportExit(null, message));
  child.once("close", (code) => reportExit(code, stderr));
  makePlace().catch(leave);
}

function notifyParent(news: SpawnerNews): void {
  // The gateway may have ended.
  if (process.connected) process.send?.(news, undefined, undefined, () => {});
}
