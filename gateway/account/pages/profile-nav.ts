/** The navigation of a signed-in person, without pages that the person may not open. */
import { CONSOLE } from "../../pages/console-path.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Link } from "../../pages/page.ts";
import type { Visit } from "./visit.ts";

export const PROFILE_PATHS = {
  clients: "/profile/clients",
  members: "/profile/members",
  password: "/profile/password",
} as const;

export async function profileNav(
  visit: Visit,
  { link, here, isAdministrator }: { link: Link; here: string; isAdministrator: boolean },
): Promise<Html> {
  const entries = [
    [CONSOLE, "Console"],
    [PROFILE_PATHS.clients, "Authorized clients"],
    ...(isAdministrator ? [[PROFILE_PATHS.members, "Members"] as const] : []),
    [PROFILE_PATHS.password, "Password"],
  ] as const;
  return html`<nav aria-label="Profile">
${entries.map(
  ([path, name]) =>
    html`<a href="${link(path)}"${path === here && html` aria-current="page"`}>${name}</a>\n`,
)}
<form method="post" action="${link("/signout")}">${await visit.markField("signout")}<button class="plain">Sign out</button></form>
</nav>`;
}
