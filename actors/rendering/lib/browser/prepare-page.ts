/** Sets a blank page up as its caller wants it, before anything loads. */
import type { Protocol } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { Cookie } from "../../../../schemas/rendering/http/cookies.ts";
import type { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { definedOf } from "./defined-of.ts";
import type { RenderContext } from "./render-context.ts";
import { type FilterHooks, filterRequests } from "./request-filter.ts";

/** The common part of all requests for a page, without the options of the result. */
export type PageRequest = Omit<PdfRequest, "pdfOptions" | "scrollPage">;

/**
 * Extra headers go with every request of the page, to any host, as puppeteer's users expect. Clients that send
 * secrets should allow only one host by `allowRequestPattern`.
 */
export async function preparePage(
  context: Pick<RenderContext, "page" | "session" | "authorize">,
  parameters: PageRequest,
  hooks: FilterHooks = {},
): Promise<void> {
  const { page, session } = context;
  const { emulateMediaType, viewport, userAgent, setExtraHTTPHeaders, cookies } = parameters;
  const { setJavaScriptEnabled, addStyleTag, addScriptTag } = parameters;
  const hasTags = addStyleTag !== undefined || addScriptTag !== undefined;
  // Most submitted documents fetch nothing, and a navigation for nothing takes a quarter of a small PDF's time.
  if (parameters.url !== undefined) await context.authorize();
  // These calls are independent, and each takes a round trip.
  await Promise.all([
    // By our session, as no other emulation: the last session of a page resets it where the page changes its process,
    // and
    // that is ours. What puppeteer's session says is lost at the first address.
    emulateMediaType && session.send("Emulation.setEmulatedMedia", { media: emulateMediaType }),
    cookies && setCookies(context, cookies, parameters.url),
    viewport && page.setViewport(definedOf(viewport)),
    userAgent && page.setUserAgent({ userAgent }),
    setExtraHTTPHeaders && page.setExtraHTTPHeaders(setExtraHTTPHeaders),
    setJavaScriptEnabled === false && page.setJavaScriptEnabled(false),
    // A site's policy is about others' tags; the caller's own are to work on every page.
    hasTags && page.setBypassCSP(true),
    filterRequests({ page, session }, parameters, hooks),
  ]);
}

async function setCookies(
  { session }: Pick<RenderContext, "session">,
  cookies: readonly Cookie[],
  pageUrl: string | undefined,
): Promise<void> {
  try {
    await session.send("Network.setCookies", {
      cookies: cookies.map((cookie) => cookieParameters(cookie, pageUrl)),
    });
  } catch (error) {
    throw new ActorError("invalid_request", "Cannot set cookies: the browser does not accept one", {
      faults: [
        {
          pointer: "/cookies",
          message: `Expected cookies that a browser accepts: ${error instanceof Error ? error.message : error}`,
        },
      ],
    });
  }
}

function cookieParameters(cookie: Cookie, pageUrl: string | undefined) {
  // `sameParty` has no meaning any more.
  const { partitionKey, sameParty: _, url = cookie.domain ? undefined : pageUrl, ...same } = cookie;
  return definedOf<Protocol.Network.CookieParam>({
    ...same,
    url,
    partitionKey:
      partitionKey === undefined
        ? undefined
        : { topLevelSite: partitionKey, hasCrossSiteAncestor: false },
  });
}
