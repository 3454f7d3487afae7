/** The properties of the machine that are needed to compare benchmark figures. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { findNatsServer, REPOSITORY } from "../tools.ts";

export function machineFacts() {
  const natsConf = readFileSync(join(REPOSITORY, "deploy/nats-base.conf"), "utf8");
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

/** Returns the load average of the last minute. Other programs on the machine influence every figure. */
export const loadAverage = () => Math.round((loadavg()[0] ?? 0) * 100) / 100;
