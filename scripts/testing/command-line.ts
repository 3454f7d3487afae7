/** Runs the project's command line, and the nats CLI, as an operator does: each in a process of its own. */
import { execFile } from "node:child_process";
import { join } from "node:path";

const MAIN = join(import.meta.dirname, "../trunkline.ts");
const COMMAND_MS_MAX = 150_000;

export interface CommandEnd {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs `scripts/trunkline <parameters>`, with the bus at `url` if it is given. */
export function trunkline(parameters: string[], url?: string): Promise<CommandEnd> {
  return runCommand(process.execPath, [MAIN, ...parameters], {
    ...(url !== undefined && { TRUNKLINE_NATS_URL: url }),
  });
}

/**
 * Runs a command. Resolves however the command ends. A command that exceeds its time is killed and gets the code -1.
 */
export function runCommand(
  program: string,
  parameters: string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...environment }, timeout: COMMAND_MS_MAX };
    execFile(program, parameters, options, (error, stdout, stderr) => {
      const code = typeof error?.code === "number" ? error.code : error ? -1 : 0;
      resolve({ code, stdout, stderr });
    });
  });
}
