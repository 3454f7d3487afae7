/** Generates the page of the command line from the help texts of all commands. */
import { ADMIN_COMMANDS } from "../admin/admin-commands.ts";
import { COMMANDS, commandList, helpOf } from "../cli/commands.ts";

export function cliPage(): string {
  const sections = COMMANDS.map(
    (command) => `### ${command.name}

\`\`\`text
${helpOf(command)}
\`\`\`
`,
  );
  return `# The command line

In a clone the program is \`scripts/trunkline\`. Where the package is installed it is \`npx trunkline\`. \`trunkline start\` runs the
platform; see [install](../operate/install.md). Run commands for apps in the folder of an app, beside its \`trunkline.jsonc\`. Errors in
that file are reported with file, line and column.

## For apps

\`\`\`text
${commandList()}
\`\`\`

## For operators

These need a machine that reaches the bus. [Monitoring](../operate/monitoring.md) and the [runbook](../operate/runbook.md) use them.

\`\`\`text
${ADMIN_COMMANDS.join("\n")}
\`\`\`

## Exit status

| exit status | meaning |
| --- | --- |
| 0 | success |
| 1 | failure |
| 2 | wrong command or arguments |

\`admin doctor\` ends with 0 if all is good, with 1 if there are warnings, and with 2 if something stops service.

## Without a login

These variables replace a login, for example in a pipeline:

| variable | meaning |
| --- | --- |
| \`TRUNKLINE_API_URL\` | the platform: \`base_url\` of \`credentials.json\`, with \`/v4\` or without |
| \`TRUNKLINE_API_TOKEN\` | an API token with Apps Write, and with the permissions of the app's bindings |
| \`TRUNKLINE_ACCOUNT_ID\` | the account; defaults to the only account of the token |

A login is stored in \`trunkline/login.json\` of your configuration folder (\`XDG_CONFIG_HOME\`, or \`~/.config\`), readable by you
only. It lasts as long as a grant of an [OAuth client](../guides/oauth.md). \`trunkline logout\` or \`/profile/clients\` ends it.

## Each command

${sections.join("\n")}`;
}
