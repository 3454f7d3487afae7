/** An app's process whose code can say what it likes to the host, as if it had broken out of its bounds. */
import type { ToProcess } from "../../../../schemas/apps/app-process.ts";

const { process } = globalThis;
const send = process.send?.bind(process);
const forger = {
  /** The agent that was opened last. */
  agent: 0,
  /** Sends as the process itself does: several messages, or a value that is no message. */
  say: (message: unknown) => send?.([message]),
};
process.on("message", (messages: ToProcess[]) => {
  for (const message of messages) if (message.type === "open") forger.agent = message.agent;
});
Object.assign(globalThis, { forger });
await import("../../process/main.ts");
