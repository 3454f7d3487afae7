/** Lets a page fetch only what its caller wants, and answers its site's authentication. */
import type { CDPSession, Page, Protocol } from "puppeteer-core";
import type { ResourceType } from "../../../../schemas/rendering/http/page-parameters.ts";
import { RESOURCE_TYPES } from "../../../../schemas/rendering/http/page-parameters.ts";
import {
  compilePattern,
  type RequestPattern,
} from "../../../../schemas/rendering/http/request-pattern.ts";
import { requestTypes, type TypeOf } from "./request-types.ts";
import { stubWebSocket } from "./stub-web-socket.ts";

/** Characters of an address that patterns are held against; a longer one is refused where there are patterns. */
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
  /** Asked before the site gets credentials for the document of the page itself, which is then requested once more. */
  mayAnswerSite?: () => Promise<boolean>;
}

type Paused = Protocol.Fetch.RequestPausedEvent;
type AuthRequired = Protocol.Fetch.AuthRequiredEvent;

/** Whether these parameters make `filterRequests` stop requests. */
export function stopsRequests(parameters: FilterParameters): boolean {
  const { stopsAll, refusedTypes } = requestRules(parameters);
  return stopsAll || refusedTypes.size > 0;
}

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
  const rules = requestRules(parameters);
  if (!rules.stopsAll && rules.refusedTypes.size === 0) return;
  const { frameTree } = await session.send("Page.getFrameTree");
  if (rules.stub) {
    await page.evaluateOnNewDocument(stubWebSocket);
    // A submitted document takes the place of this one's content.
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
  // Chromium does not know some types at the network level. The page itself reports those.
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

  /** The session of the page, or of a frame or worker that lives in a process of its own. */
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
    // Not awaited one by one: a target that waits answers nothing before it is let go, but does all in order. Kinds
    // of workers differ in what they know; what one does not know it does not need.
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
      // Asked again, they were wrong: the page is then what the site shows to strangers.
      !shown &&
      this.#mayAuthenticate(request.url) &&
      (!isOfPage || (await this.#mayAnswerSite()));
    const authChallengeResponse: Protocol.Fetch.AuthChallengeResponse =
      isMeant && authenticate !== undefined
        ? { response: "ProvideCredentials", ...authenticate }
        : { response: "CancelAuth" };
    await target.send("Fetch.continueWithAuth", { requestId, authChallengeResponse });
  }

  /** Credentials are for the host of the page, whatever else the page fetches; a submitted document has no host. */
  #mayAuthenticate(url: string): boolean {
    const page = this.#rules.url;
    return page === undefined || URL.parse(url)?.hostname === URL.parse(page)?.hostname;
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

/** Resource types by which Chromium can stop requests without showing us any others. */
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
