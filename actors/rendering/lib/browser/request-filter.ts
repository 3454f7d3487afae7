/** Lets a page fetch only what its caller wants, and answers its site's authentication. */
import { type CDPSession, CDPSessionEvent, type Page, type Protocol } from "puppeteer-core";
import { MATCHED_URL_CHARS_MAX } from "../../../../schemas/limits.ts";
import type { ResourceType } from "../../../../schemas/rendering/http/page-parameters.ts";
import { RESOURCE_TYPES } from "../../../../schemas/rendering/http/page-parameters.ts";
import {
  compilePattern,
  type RequestPattern,
} from "../../../../schemas/rendering/http/request-pattern.ts";
import { requestTypes, type TypeOf } from "./request-types.ts";
import { stubWebSocket } from "./stub-web-socket.ts";

export interface FilterParameters {
  url?: string | undefined;
  authenticate?: { username: string; password: string } | undefined;
  rejectResourceTypes?: readonly ResourceType[] | undefined;
  rejectRequestPattern?: readonly string[] | undefined;
  allowResourceTypes?: readonly ResourceType[] | undefined;
  allowRequestPattern?: readonly string[] | undefined;
}

export interface FilterHooks {
  /** Asked before the site gets credentials for the document of the page itself, which is then requested once more. */
  mayAnswerSite?: () => Promise<boolean>;
}

type Paused = Protocol.Fetch.RequestPausedEvent;
type AuthRequired = Protocol.Fetch.AuthRequiredEvent;

/**
 * Call before the page loads. The document of the page itself passes all but `rejectRequestPattern`: who names its
 * address wants it. Only what has to be decided here is stopped: with types alone, nothing but those types.
 * WebSocket handshakes cannot be stopped in the browser: unwanted by type, or where there is an allow list of patterns,
 * the page gets a `WebSocket` that never connects.
 */
export async function filterRequests(
  { page, session }: { page: Page; session: CDPSession },
  parameters: FilterParameters,
  { mayAnswerSite = async () => true }: FilterHooks = {},
): Promise<void> {
  const refusedTypes = refusedResourceTypes(parameters);
  const reject = (parameters.rejectRequestPattern ?? []).map(compilePattern);
  const allow = parameters.allowRequestPattern?.map(compilePattern);
  const { authenticate } = parameters;
  const stopsAll = reject.length > 0 || allow !== undefined || authenticate !== undefined;
  if (!stopsAll && refusedTypes.size === 0) return;

  const { frameTree } = await session.send("Page.getFrameTree");
  const mainFrame = frameTree.frame.id;
  const stub = refusedTypes.has("websocket") || allow !== undefined;
  // Chromium does not know some types at the network level. The page itself reports those.
  const guessed = [...refusedTypes].some((type) => type !== "websocket" && !(type in EXACT_TYPES));
  const patterns = stopsAll || guessed ? [{}] : [...refusedTypes].flatMap(fetchPattern);
  const credentialsShown = new Set<string>();
  if (stub) {
    await page.evaluateOnNewDocument(stubWebSocket);
    // A submitted document takes the place of this one's content.
    await page.evaluate(stubWebSocket);
  }
  await attach(session);

  /** The session of the page, or of a frame or worker that lives in a process of its own. */
  async function attach(target: CDPSession): Promise<void> {
    target.on("Fetch.authRequired", (event) => void settle(answer(target, event)));
    target.on(CDPSessionEvent.SessionAttached, (child) => void settle(attachChild(child)));
    const typeOf = requestTypes(target);
    target.on("Fetch.requestPaused", (event) => void settle(decide(target, event, typeOf)));
    const handleAuthRequests = authenticate !== undefined;
    await Promise.all([
      guessed && target.send("Network.enable"),
      patterns.length > 0 && target.send("Fetch.enable", { patterns, handleAuthRequests }),
      target.send("Target.setAutoAttach", {
        autoAttach: true,
        waitForDebuggerOnStart: true,
        flatten: true,
      }),
    ]);
  }

  async function attachChild(child: CDPSession): Promise<void> {
    // Not awaited one by one: a target that waits answers nothing before it is let go, but does all in order. Kinds
    // of workers differ in what they know; what one does not know it does not need.
    await Promise.allSettled([
      attach(child),
      stub && child.send("Runtime.evaluate", { expression: `(${stubWebSocket})()` }),
      child.send("Runtime.runIfWaitingForDebugger"),
    ]);
  }

  async function decide(target: CDPSession, event: Paused, typeOf: TypeOf): Promise<void> {
    const { requestId, resourceType } = event;
    const exact = !guessed || resourceType.toLowerCase() in EXACT_TYPES;
    const type = exact ? resourceType.toLowerCase() : await typeOf(event);
    if (isWanted(event, type)) await target.send("Fetch.continueRequest", { requestId });
    else await target.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" });
  }

  function isWanted({ request: { url }, frameId }: Paused, type: string): boolean {
    const long = url.length > MATCHED_URL_CHARS_MAX;
    if (reject.length > 0 && (long || matches(reject, url))) return false;
    if (type === "document" && frameId === mainFrame) return true;
    if (refusedTypes.has(type as ResourceType)) return false;
    return allow === undefined || (!long && matches(allow, url));
  }

  async function answer(target: CDPSession, event: AuthRequired) {
    const { requestId, request, authChallenge, resourceType, frameId } = event;
    const shown = credentialsShown.has(requestId);
    credentialsShown.add(requestId);
    const isOfPage = resourceType === "Document" && frameId === mainFrame;
    const isMeant =
      authChallenge.source !== "Proxy" &&
      // Asked again, they were wrong: the page is then what the site shows to strangers.
      !shown &&
      mayAuthenticate(request.url) &&
      (!isOfPage || (await mayAnswerSite()));
    const authChallengeResponse: Protocol.Fetch.AuthChallengeResponse =
      isMeant && authenticate !== undefined
        ? { response: "ProvideCredentials", ...authenticate }
        : { response: "CancelAuth" };
    await target.send("Fetch.continueWithAuth", { requestId, authChallengeResponse });
  }

  /** Credentials are for the host of the page, whatever else the page fetches; a submitted document has no host. */
  function mayAuthenticate(url: string): boolean {
    if (parameters.url === undefined) return true;
    return URL.parse(url)?.hostname === URL.parse(parameters.url)?.hostname;
  }
}

/** A page that is gone needs no answers. */
async function settle(work: Promise<void>): Promise<void> {
  await work.catch(() => {});
}

function refusedResourceTypes({
  rejectResourceTypes = [],
  allowResourceTypes,
}: FilterParameters): Set<ResourceType> {
  const refused = new Set(rejectResourceTypes);
  if (allowResourceTypes === undefined) return refused;
  return refused.union(new Set(RESOURCE_TYPES).difference(new Set(allowResourceTypes)));
}

function matches(patterns: readonly RequestPattern[], url: string): boolean {
  return patterns.some((pattern) => pattern.test(url));
}

/** What requests can be stopped by, without a look at any other. */
const EXACT_TYPES: Partial<Record<string, Protocol.Network.ResourceType>> = {
  document: "Document",
  stylesheet: "Stylesheet",
  image: "Image",
  media: "Media",
  font: "Font",
  script: "Script",
};

function fetchPattern(type: ResourceType): Protocol.Fetch.RequestPattern[] {
  const resourceType = EXACT_TYPES[type];
  return resourceType === undefined ? [] : [{ resourceType }];
}
