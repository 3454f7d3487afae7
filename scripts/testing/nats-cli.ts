/** Gives a test the real `nats` command line: an operator's tool. */
import { goTool } from "./go-tool.ts";

/** The path of the nats CLI, or undefined where Go is missing. */
export const natsCli = ({ isOptimized = false } = {}) =>
  goTool({
    isOptimized,
    name: "nats",
    version: "0.4.0",
    package: "github.com/nats-io/natscli/nats",
    folder: "natscli",
  });

/** Returns the path of the nats CLI. If Go is missing, prints the reason and skips the tests of the hook. */
export async function natsCliOrSkip(hook: Mocha.Context): Promise<string> {
  hook.timeout(900_000); // The first build of the CLI compiles a few hundred packages.
  const cli = await natsCli();
  if (cli !== undefined) return cli;
  console.log("      skipped: the nats CLI is built with Go, which is missing here");
  return hook.skip();
}
