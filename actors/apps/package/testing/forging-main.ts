/** An app's process whose code can send any message to the host, as if it had escaped from its isolation. */
import type { ToProcess } from "../../../../schemas/apps/app-process.ts";

const { process } = globalThis;
const send = process.send?.bind(process);
const forger = {
  /** The agent that was opened last. */
  agent: 0,
  /** Sends like the process itself: a list of messages, or a value that is not a message. */
  say: (message: unknown) => send?.([message]),
};
process.on("message", (messages: ToProcess[]) => {
  for (const message of messages) if (message.type === "open") forger.agent = message.agent;
});
Object.assign(globalThis, { forger });
await import("../../process/main.ts");
