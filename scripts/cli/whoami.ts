/** `trunkline whoami`: asks the platform, and prints the platform and the account that commands use. */
import { z } from "zod";
import { type Command, readParameters } from "./command.ts";
import { loginFolder, readLogin } from "./login-file.ts";
import { openPlatform } from "./platform.ts";

export const whoami: Command = {
  name: "whoami",
  usage: "",
  summary: "print the platform and the account that commands use",
  help: "Asks the platform, so the answer also shows whether the token is still valid.",
  async run(parameters, environment) {
    readParameters(parameters, {});
    const platform = await openPlatform(environment);
    const { name } = await platform.ask("", z.object({ name: z.string() }));
    const byToken = (environment.TRUNKLINE_API_TOKEN ?? "") !== "";
    const login = byToken ? undefined : await readLogin(loginFolder(environment));
    console.log(
      [
        `Platform  ${platform.apiUrl}`,
        `Account   ${name} (${platform.accountId})`,
        `As        ${login?.email ?? "the token in TRUNKLINE_API_TOKEN"}`,
      ].join("\n"),
    );
  },
};
