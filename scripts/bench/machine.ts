/** The facts of the machine that make benchmark figures comparable. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { findNatsServer, REPOSITORY } from "../tools.ts";

export function machineFacts() {
  const natsConf = readFileSync(join(REPOSITORY, "nats.conf"), "utf8");
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? "unknown",
    memoryGib: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    natsServer: execFileSync(findNatsServer(), ["--version"], { encoding: "utf8" }).trim(),
    syncInterval: /^\s*sync_interval:\s*(\S+)/m.exec(natsConf)?.[1] ?? "default",
    loadAverage: loadAverage(),
  };
}

/** Processes that wanted to run over the last minute: what others do on the machine is in every figure. */
export const loadAverage = () => Math.round((loadavg()[0] ?? 0) * 100) / 100;
