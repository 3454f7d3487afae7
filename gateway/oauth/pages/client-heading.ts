/** The head of the consent page: the client's name, logo, publisher and links. */

import { type Html, html } from "../../pages/html.ts";
import { COMMAND_LINE_CLIENT } from "../clients/command-line-client.ts";
import type { LiveClient } from "../clients/live-client.ts";

/** `owner` is the name of the account that owns a private client. `logo` is the address of our copy of the logo. */
export function clientHeading(
  client: LiveClient,
  { owner, logo }: { owner?: string | undefined; logo?: string | undefined },
): Html {
  const { clientName } = client;
  // If the logo does not load, the style sheet shows this letter instead: browsers draw `::after` only for a broken
  // image.
  const letter = [...clientName][0]?.toUpperCase();
  return html`<div class="client">
${
  logo === undefined
    ? html`<span class="letter" aria-hidden="true">${letter}</span>`
    : html`<img src="${logo}" alt="" data-letter="${letter}" width="52" height="52">`
}
<h1>Authorize ${clientName}</h1>
</div>
<p>${publisherOf(client, owner)}</p>
${linksOf(client)}`;
}

function publisherOf(client: LiveClient, owner: string | undefined): Html {
  if (client === COMMAND_LINE_CLIENT) {
    return html`Part of this platform. Go on only if you have just typed <strong>trunkline login</strong>.`;
  }
  const { verification, clientUri } = client;
  if (owner !== undefined) return html`A private client of the account <strong>${owner}</strong>.`;
  const host = clientUri === undefined ? undefined : new URL(clientUri).hostname;
  const isVerified = verification?.status === "verified" && verification.host === host;
  const since = verification?.missingSince;
  if (host !== undefined && isVerified && since !== undefined) {
    const date = new Date(since).toISOString().slice(0, 10);
    return html`<strong>${host}</strong> confirmed that it publishes this, but has not done so any more since <time datetime="${date}">${date}</time>. Go on only if you know who runs it.`;
  }
  if (host !== undefined && isVerified) {
    return html`Published by <strong>${host}</strong>, which has confirmed it.`;
  }
  return html`Its publisher is not verified. Go on only if you know who runs it.`;
}

function linksOf({ clientUri, policyUri, tosUri }: LiveClient): Html {
  const links = [
    [clientUri, "Website"],
    [policyUri, "Privacy policy"],
    [tosUri, "Terms of service"],
  ] as const;
  if (links.every(([uri]) => uri === undefined)) return html``;
  return html`<p class="links quiet">${links.map(
    ([uri, name]) =>
      uri !== undefined &&
      html`<a href="${uri}" target="_blank" rel="noopener noreferrer">${name}</a> `,
  )}</p>`;
}
