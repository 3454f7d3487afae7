/** The description of the DevTools protocol, without the commands that sessions refuse. */
import { createRequire } from "node:module";
import { isOffered } from "../../../schemas/rendering/devtools-commands.ts";

interface Domain {
  [field: string]: unknown;
  domain: string;
  commands?: { name: string }[];
}
interface Protocol {
  version: { major: string; minor: string };
  domains: Domain[];
}

let offered: Protocol | undefined;

/**
 * Returns the protocol as described by the package with which puppeteer is tested. The files are read at the first
 * call.
 */
export function offeredProtocol(): Protocol {
  offered ??= read();
  return offered;
}

function read(): Protocol {
  const require = createRequire(import.meta.url);
  const browser: Protocol = require("devtools-protocol/json/browser_protocol.json");
  const javascript: Protocol = require("devtools-protocol/json/js_protocol.json");
  const domains = [...browser.domains, ...javascript.domains].map((domain) => ({
    ...domain,
    commands: (domain.commands ?? []).filter(({ name }) => isOffered(`${domain.domain}.${name}`)),
  }));
  return {
    version: browser.version,
    domains: domains.filter(({ commands }) => commands.length > 0),
  };
}
