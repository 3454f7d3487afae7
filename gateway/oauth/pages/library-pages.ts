/** The pages that oidc-provider shows: errors, and sign-out for a client. */
import type { KoaContextWithOIDC } from "oidc-provider";
import { type Html, html } from "../../pages/html.ts";
import { type Link, type Page, pageHeaders, requestIdOf, writePage } from "../../pages/page.ts";
import type { ProviderParts } from "../provider/provider-parts.ts";

export function libraryPages(link: Link): ProviderParts["pages"] {
  return { error, confirmLogout, loggedOut };

  function error(
    context: KoaContextWithOIDC,
    {
      error: code,
      error_description: text,
    }: { error: string; error_description?: string | undefined },
    target?: URL,
  ): void {
    const page = {
      title: "Cannot authorize",
      body: html`<h1>This cannot go on</h1>
<p>The application that sent you here asked for something that cannot be done. Go back to it and start again; if it
happens again, tell whoever runs it:</p>
<p class="note bad"><strong>${code}</strong>${text !== undefined && html`<br>${text}`}</p>
${target && onward(target, "Go back to")}`,
    };
    show(context, page, requestIdOf(context.res));
  }

  function confirmLogout(context: KoaContextWithOIDC, secret: string): void {
    show(context, {
      title: "Sign out",
      leadsOut: context.oidc.params?.post_logout_redirect_uri !== undefined,
      body: html`<h1>Sign out?</h1>
<p>An application asks to sign you out of Trunkline in this browser. What it may do in your name stays as it is.</p>
<form method="post" action="${link("/oauth2/logout/confirm")}">
<input type="hidden" name="xsrf" value="${secret}">
<div class="buttons">
<button name="logout" value="yes">Sign out</button>
<button class="second">Stay signed in</button>
</div>
</form>`,
    });
  }

  function loggedOut(context: KoaContextWithOIDC, target?: URL): void {
    show(context, {
      title: "Signed out",
      body: html`<h1>Done</h1>
<p>You can close this page, or <a href="${link("/login")}">sign in</a>.</p>
${target && onward(target, "Go on to")}`,
    });
  }

  /**
   * Renders a link that names the host of its target, so that the person sees where it leads. A custom scheme has no
   * host.
   */
  function onward(target: URL, words: string): Html {
    const where = target.host || target.protocol.slice(0, -1);
    return html`<p><a href="${target.href}">${words} <strong>${where}</strong></a></p>`;
  }

  function show(context: KoaContextWithOIDC, page: Page, requestId?: string): void {
    context.set(pageHeaders(page));
    context.body = writePage(page, link, requestId);
  }
}
