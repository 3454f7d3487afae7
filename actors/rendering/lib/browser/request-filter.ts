/** Blocks requests of a page that the caller does not want, and answers the authentication challenge of its site. */
import type { CDPSession, Page, Protocol } from "puppeteer-core";
import type { ResourceType } from "../../../../schemas/rendering/http/page-parameters.ts";
import { RESOURCE_TYPES } from "../../../../schemas/rendering/http/page-parameters.ts";
import {
  compilePattern,
  type RequestPattern,
} from "../../../../schemas/rendering/http/request-pattern.ts";
import { requestTypes, type TypeOf } from "./request-types.ts";
import { stubWebSocket } from "./stub-web-socket.ts";

/**
 * Maximum characters of an address that is compared with patterns. If there are patterns, a longer address is
 * refused.
 */
const MATCHED_URL_CHARS_MAX = 65_536;

export interface FilterParameters {
  url?: string | undefined;
  authenticate?: { username: string; password: string } | undefined;
  rejectResourceTypes?: readonly ResourceType[] | undefined;
  rejectRequestPattern?: readonly string[] | undefined;
  allowResourceTypes?: readonly ResourceType[] | undefined;
  allowRequestPattern?: readonly string[] | undefined;
}

export interface FilterHooks {
  /**
   * Called before the site gets credentials for the main document, which is then requested once more. Returns whether
   * that is allowed.
   */
  mayAnswerSite?: () => Promise<boolean>;
}

type Paused = Protocol.Fetch.RequestPausedEvent;
type AuthRequired = Protocol.Fetch.AuthRequiredEvent;

/** Whether `filterRequests` would intercept requests with these parameters. */
export function stopsRequests(parameters: FilterParameters): boolean {
  const { stopsAll, refusedTypes } = requestRules(parameters);
  return stopsAll || refusedTypes.size > 0;
}

/**
 * Call this before the page loads. The main document is blocked only by `rejectRequestPattern`, because the caller
 * has named its address. Only requests that need a decision here are intercepted; if the rules contain only types,
 * only requests of these types are intercepted. WebSocket handshakes cannot be intercepted in the browser. If
 * WebSockets are refused by type, or if there is an allow list of patterns, the page gets a `WebSocket` that never
 * connects.
 */
export async function filterRequests(
  { page, session }: { page: Page; session: CDPSession },
  parameters: FilterParameters,
  { mayAnswerSite = async () => true }: FilterHooks = {},
): Promise<void> {
  const rules = requestRules(parameters);
  if (!rules.stopsAll && rules.refusedTypes.size === 0) return;
  const { frameTree } = await session.send("Page.getFrameTree");
  if (rules.stub) {
    await page.evaluateOnNewDocument(stubWebSocket);
    // Also in the current document, because a submitted document replaces only its content.
    await page.evaluate(stubWebSocket);
  }
  await new RequestFilter(rules, { mainFrame: frameTree.frame.id, mayAnswerSite }).attach(session);
}

/** Turns the parameters of a page into rules for its requests. */
function requestRules(parameters: FilterParameters) {
  const refusedTypes = refusedResourceTypes(parameters);
  const reject = (parameters.rejectRequestPattern ?? []).map(compilePattern);
  const allow = parameters.allowRequestPattern?.map(compilePattern);
  const { authenticate, url } = parameters;
  const stopsAll = reject.length > 0 || allow !== undefined || authenticate !== undefined;
  const stub = refusedTypes.has("websocket") || allow !== undefined;
  // Chromium does not report some types at the network level. For these types, the filter uses the type that the page
  // itself reports.
  const guessed = [...refusedTypes].some((type) => type !== "websocket" && !(type in EXACT_TYPES));
  const patterns = stopsAll || guessed ? [{}] : [...refusedTypes].flatMap(fetchPattern);
  return { refusedTypes, reject, allow, authenticate, url, stopsAll, stub, guessed, patterns };
}

interface Surroundings {
  mainFrame: string;
  mayAnswerSite: () => Promise<boolean>;
}

/** Decides about the requests of one page, its frames and its workers. */
class RequestFilter {
  readonly #rules: ReturnType<typeof requestRules>;
  readonly #mainFrame: string;
  readonly #mayAnswerSite: () => Promise<boolean>;
  readonly #credentialsShown = new Set<string>();

  constructor(rules: ReturnType<typeof requestRules>, { mainFrame, mayAnswerSite }: Surroundings) {
    this.#rules = rules;
    this.#mainFrame = mainFrame;
    this.#mayAnswerSite = mayAnswerSite;
  }

  /** Attaches to a session: of the page, or of a frame or worker in a separate process. */
  async attach(target: CDPSession): Promise<void> {
    const { authenticate, guessed, patterns } = this.#rules;
    target.on("Fetch.authRequired", (event) => void settle(this.#answer(target, event)));
    target.on("sessionattached", (child) => void settle(this.#attachChild(child)));
    const typeOf = requestTypes(target);
    target.on("Fetch.requestPaused", (event) => void settle(this.#decide(target, event, typeOf)));
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

  async #attachChild(child: CDPSession): Promise<void> {
    // The calls are sent together and not awaited one by one: a paused target executes them in order, but answers
    // only after it was resumed. Some kinds of workers do not support all of the calls; these fail without harm.
    const expression = `(${stubWebSocket})()`;
    await Promise.allSettled([
      this.attach(child),
      this.#rules.stub && child.send("Runtime.evaluate", { expression }),
      child.send("Runtime.runIfWaitingForDebugger"),
    ]);
  }

  async #decide(target: CDPSession, event: Paused, typeOf: TypeOf): Promise<void> {
    const { requestId, resourceType } = event;
    const exact = !this.#rules.guessed || resourceType.toLowerCase() in EXACT_TYPES;
    const type = exact ? resourceType.toLowerCase() : await typeOf(event);
    if (this.#isWanted(event, type)) await target.send("Fetch.continueRequest", { requestId });
    else await target.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" });
  }

  #isWanted({ request: { url }, frameId }: Paused, type: string): boolean {
    const { reject, allow, refusedTypes } = this.#rules;
    const long = url.length > MATCHED_URL_CHARS_MAX;
    if (reject.length > 0 && (long || matches(reject, url))) return false;
    if (type === "document" && frameId === this.#mainFrame) return true;
    if (refusedTypes.has(type as ResourceType)) return false;
    return allow === undefined || (!long && matches(allow, url));
  }

  async #answer(target: CDPSession, event: AuthRequired): Promise<void> {
    const { requestId, request, authChallenge, resourceType, frameId } = event;
    const { authenticate } = this.#rules;
    const shown = this.#credentialsShown.has(requestId);
    this.#credentialsShown.add(requestId);
    const isOfPage = resourceType === "Document" && frameId === this.#mainFrame;
    const isMeant =
      authChallenge.source !== "Proxy" &&
      // If the site asks again, the credentials were wrong. The page then shows what the site shows without
      // credentials.
      !shown &&
      this.#mayAuthenticate(request.url) &&
      (!isOfPage || (await this.#mayAnswerSite()));
    const authChallengeResponse: Protocol.Fetch.AuthChallengeResponse =
      isMeant && authenticate !== undefined
        ? { response: "ProvideCredentials", ...authenticate }
        : { response: "CancelAuth" };
    await target.send("Fetch.continueWithAuth", { requestId, authChallengeResponse });
  }

  /**
   * Whether the URL may get the credentials: only the page's own site may. A submitted document has no site, so with
   * it every site may.
   */
  #mayAuthenticate(url: string): boolean {
    const page = this.#rules.url;
    return page === undefined || mayShareCredentials(URL.parse(page), URL.parse(url));
  }
}

/**
 * Whether the credentials of the page may go to the URL: to its origin, or to its host over https. Another port or scheme of the host
 * may belong to somebody else, and http would send the credentials in clear. Sites redirect from http to https, so
 * that step is allowed between the default ports.
 */
export function mayShareCredentials(page: URL | null, url: URL | null): boolean {
  if (url === null || page === null) return false;
  if (url.origin === page.origin) return true;
  const isUpgrade = page.protocol === "http:" && url.protocol === "https:";
  return isUpgrade && url.hostname === page.hostname && url.port === "" && page.port === "";
}

/** Ignores errors: a page that is closed needs no answers. */
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

/** Resource types that Chromium can intercept without intercepting requests of other types. */
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
