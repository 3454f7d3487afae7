/**
 * Decides which commands of the DevTools protocol a client may send to the browser of its session.
 *
 * The browser of a session is a process tree of its own: an unprivileged user, a profile of its own, and a proxy that
 * refuses private addresses. These hold whatever a client sends. The filter closes what the protocol opens beside
 * them, because the protocol trusts its client with the machine:
 *
 * - files: `DOM.setFileInputFiles` and dragged files make a page read any file, downloads and traces write them, and
 *   `file:` shows them;
 * - the network: a context may name a proxy, or `Tethering` a port of this machine;
 * - pages of the browser itself (`chrome:`, `devtools:`), which may do more than the protocol says;
 * - the filter: `Target.exposeDevToolsProtocol` and `Target.sendMessageToTarget` carry commands that no filter reads.
 *
 * Domains are on a list of allowed ones, so a domain that a later Chromium brings is closed. Of a domain whose
 * commands only touch pages, single commands are refused; of the other domains, single commands are allowed. A test
 * holds the commands of the present protocol against a list of reviewed ones.
 */
import { isOffered, REFUSED_COMMANDS } from "../../../../schemas/rendering/devtools-commands.ts";
import { isObject, type Json } from "./cdp-message.ts";

export type Verdict =
  /** The command is sent to the browser with these parameters. */
  | { forward: Json }
  | { refuse: string }
  /** A context is created. It gets the session's proxy before the client learns of the context. */
  | { createContext: Json }
  /** The client ends its session. */
  | { end: true };

/** Commands that a viewer may send, which only show the page. */
const READ_ONLY: ReadonlySet<string> = new Set([
  "Page.enable",
  "Page.screencastFrameAck",
  "Page.startScreencast",
  "Page.stopScreencast",
]);

const FILES = "a session reads and writes no files of its machine";

/** Schemes of addresses to which a page may navigate. */
const SCHEMES: ReadonlySet<string> = new Set(["http:", "https:", "about:", "data:", "blob:"]);
/**
 * Schemes that show files of the machine or pages of the browser itself. No target of a session may ever have such an
 * address.
 */
const FORBIDDEN_SCHEMES = /^(?:file|filesystem|chrome|devtools|view-source|chrome-untrusted):/i;

/** Decides whether a command of a client is forwarded, changed or refused. */
export function judge(method: string, params: Json, { isReadOnly = false } = {}): Verdict {
  if (isReadOnly && !READ_ONLY.has(method)) {
    return { refuse: `Cannot send ${method}: this address only shows the page` };
  }
  const refused = REFUSED_COMMANDS.get(method);
  if (refused !== undefined) return { refuse: `Cannot send ${method}: ${refused}` };
  if (!isOffered(method)) {
    return { refuse: `Cannot send ${method}: sessions do not offer it` };
  }
  return CHECKS[method]?.(params) ?? { forward: params };
}

/** Whether a target with this address is forbidden in sessions. */
export const isForbiddenAddress = (url: string): boolean => FORBIDDEN_SCHEMES.test(url);

/** Returns the normalised address; undefined if the browser must not open it. */
export function openableAddress(url: unknown): string | undefined {
  if (url === "") return "";
  const parsed = typeof url === "string" ? URL.parse(url) : null;
  return parsed && SCHEMES.has(parsed.protocol) ? parsed.href : undefined;
}

/** Checks of commands whose permission depends on their parameters. */
const CHECKS: Readonly<Record<string, (params: Json) => Verdict | undefined>> = {
  "Browser.close": () => ({ end: true }),
  "Browser.setDownloadBehavior": withoutDownloads,
  "Page.setDownloadBehavior": withoutDownloads,
  "Fetch.continueRequest": (params) =>
    params.url === undefined ? undefined : withAddress("Fetch.continueRequest", params),
  "Input.dispatchDragEvent": ({ data }) =>
    isObject(data) && data.files !== undefined && !isEmptyArray(data.files)
      ? { refuse: `Cannot send Input.dispatchDragEvent with data.files: ${FILES}` }
      : undefined,
  "Network.loadNetworkResource": (params) => withAddress("Network.loadNetworkResource", params),
  "Page.navigate": (params) => withAddress("Page.navigate", params),
  "Target.attachToTarget": flattened("Target.attachToTarget"),
  "Target.setAutoAttach": flattened("Target.setAutoAttach"),
  "Target.createBrowserContext": contextWithoutProxy,
  "Target.createTarget": (params) => withAddress("Target.createTarget", params),
  "Tracing.start": (params) =>
    params.perfettoConfig === undefined
      ? undefined
      : { refuse: "Cannot send Tracing.start with perfettoConfig: expected traceConfig" },
};

/**
 * Replaces the requested download behaviour by "deny". Clients set the behaviour, some of them as their first
 * command, but downloads always stay off.
 */
function withoutDownloads({ browserContextId, eventsEnabled }: Json): Verdict {
  return {
    forward: {
      behavior: "deny",
      ...(browserContextId !== undefined && { browserContextId }),
      ...(eventsEnabled !== undefined && { eventsEnabled }),
    },
  };
}

function withAddress(method: string, params: Json): Verdict {
  const url = openableAddress(params.url);
  if (url !== undefined) return { forward: { ...params, url } };
  const schemes = [...SCHEMES].join(" ");
  return { refuse: `Cannot send ${method}: expected a url of one of the schemes ${schemes}` };
}

/**
 * Refuses attachments without `flatten`. In that older form, commands to a target are sent as text inside another
 * command, where the filter cannot read them.
 */
function flattened(method: string) {
  return ({ flatten, autoAttach }: Json): Verdict | undefined =>
    flatten === true || autoAttach === false
      ? undefined
      : { refuse: `Cannot send ${method}: expected flatten: true` };
}

/** Fields with which requests of a context would bypass the guard. */
const NETWORK_FIELDS = ["proxyServer", "proxyBypassList", "originsWithUniversalNetworkAccess"];

function contextWithoutProxy(params: Json): Verdict {
  const field = NETWORK_FIELDS.find((name) => params[name] !== undefined && params[name] !== "");
  return field === undefined
    ? { createContext: { disposeOnDetach: params.disposeOnDetach === true } }
    : {
        refuse: `Cannot send Target.createBrowserContext with ${field}: sessions have one way out, which they share`,
      };
}

const isEmptyArray = (value: unknown) => Array.isArray(value) && value.length === 0;
