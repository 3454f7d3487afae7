/** Converts names of code to names in addresses. It imports nothing, because processes of apps load it too. */

/**
 * A class or binding as it stands in addresses: `RepoAgent` is `repo-agent`, `GitHubAgent` is `git-hub-agent`,
 * `AIAgent` is `a-i-agent`, `TEAM_BOT` is `team-bot`. Clients in the field write it so.
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
