/** Converts names in code to names in addresses. The file imports nothing, because processes of apps load it too. */

/**
 * Returns the name of a class or binding as it appears in addresses: `RepoAgent` becomes `repo-agent`, `GitHubAgent`
 * `git-hub-agent`, `AIAgent` `a-i-agent`, and `TEAM_BOT` `team-bot`. Existing client libraries convert names in this
 * way.
 */
export function kebabOf(name: string): string {
  if (name === name.toUpperCase() && name !== name.toLowerCase()) {
    return name.toLowerCase().replaceAll("_", "-");
  }
  return name
    .replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .replace(/^-/, "")
    .replaceAll("_", "-")
    .replace(/-$/, "");
}
