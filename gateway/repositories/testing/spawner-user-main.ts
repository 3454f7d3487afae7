/** Starts, through the spawner, a child that does not end by itself: `<folder for temporary files>`. */
import { setTimeout } from "node:timers/promises";
import { Spawner } from "../process/spawner.ts";

const [folder = ""] = process.argv.slice(2);
process.env.TMPDIR = folder;
const spawner = new Spawner();
for (;;) {
  const child = spawner.spawn({
    file: "/bin/sh",
    parameters: ["-c", "echo $$; exec sleep 600"],
    cwd: folder,
    environment: { PATH: process.env.PATH ?? "" },
  });
  if (child) {
    const [pid] = await child.stdout.take(1).toArray();
    console.log(`runs ${String(pid).trim()} by ${spawner.pid}`);
    break;
  }
  await setTimeout(10);
}
