/** Reads a secret value: all of stdin, or hidden input from a terminal. */
import { ReadStream } from "node:tty";
import { APP_SECRET_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { CommandFailure } from "./command.ts";

/** Characters that end the input: Enter and Ctrl-D. */
const ENDS = new Set(["\r", "\n", "\u0004"]);

/** Returns the value without the line break at its end. */
export async function readSecret(question: string): Promise<string> {
  const { stdin } = process;
  if (stdin instanceof ReadStream && stdin.isTTY) return typed(stdin, question);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    bytes += chunk.length;
    // Allows two additional bytes for the line break at the end.
    if (bytes > APP_SECRET_BYTES_MAX + 2) {
      throw new CommandFailure(`Cannot put secret: expected at most ${APP_SECRET_BYTES_MAX} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "");
}

function typed(terminal: ReadStream, question: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let value = "";
  process.stderr.write(question);
  terminal.setRawMode(true);
  terminal.setEncoding("utf8");
  terminal.on("data", take);
  return promise.finally(() => {
    terminal.off("data", take);
    terminal.setRawMode(false);
    terminal.pause();
    process.stderr.write("\n");
  });

  function take(text: string): void {
    for (const character of text) {
      if (ENDS.has(character)) resolve(value);
      if (character === "\u0003") reject(new CommandFailure("Nothing was put"));
      // Backspace, as terminals send it.
      if (character === "\u007f" || character === "\b") value = [...value].slice(0, -1).join("");
      else value += character;
    }
  }
}
