/** Runs the commands `admin backup` and `admin restore` in tests, and compares what they copy. */
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { backupMarkSubject, STREAMS } from "../../schemas/subjects.ts";
import type { adminBackup } from "../admin/admin-backup.ts";
import { readMessages } from "../admin/backup/read-stream.ts";
import { UsageError } from "../admin/usage-error.ts";
import type { CommandEnd } from "./command-line.ts";
import type { TestNatsServer } from "./nats-server.ts";

/** Runs the command in this process, because starting another process takes a second. */
export async function runBackupCommand(
  command: typeof adminBackup,
  parameters: readonly string[],
  url: string,
): Promise<CommandEnd> {
  const lines: string[] = [];
  const print = (text: string) => void lines.push(`${text}\n`);
  try {
    await command(parameters, { TRUNKLINE_NATS_URL: url }, print);
    return { code: 0, stdout: lines.join(""), stderr: "" };
  } catch (error) {
    const code = error instanceof UsageError ? 2 : 1;
    return { code, stdout: lines.join(""), stderr: error instanceof Error ? error.message : "" };
  }
}

/** Returns all messages of all streams except those of the cache, and except marks of backups. */
export async function backupContent(bus: Bus) {
  const content = [];
  for await (const info of bus.jetstream.streams.list()) {
    if (info.config.name === STREAMS.cache) continue;
    for await (const message of readMessages(bus, info, 1)) {
      if (message.subject.startsWith(backupMarkSubject(""))) continue;
      const { payload, headers: block, timestamp, ...rest } = message;
      const text = { payload: Buffer.from(payload).toString(), headers: String(block) };
      content.push({ stream: info.config.name, ...rest, ...text, timestamp: String(timestamp) });
    }
  }
  return content.sort((a, b) => (a.stream < b.stream ? 1 : a.stream > b.stream ? -1 : 0));
}

export async function streamsOn({ url }: TestNatsServer): Promise<string[]> {
  const bus = await Bus.connect({ url, name: "test" });
  const names: string[] = [];
  for await (const name of bus.jetstream.streams.names()) names.push(name);
  await bus.close();
  return names;
}
