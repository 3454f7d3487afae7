/** Sets up a blank page as the request demands, before anything loads. */
import type { CDPSession, Protocol } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import type { Cookie } from "../../../../schemas/rendering/http/cookies.ts";
import type { PdfRequest } from "../../../../schemas/rendering/http/pdf.ts";
import { definedOf } from "./defined-of.ts";
import type { RenderContext } from "./render-context.ts";
import { type FilterHooks, filterRequests, stopsRequests } from "./request-filter.ts";

/** The common part of all requests for a page, without the options of the result. */
export type PageRequest = Omit<PdfRequest, "pdfOptions" | "scrollPage" | "sources">;

/**
 * The parts of a context that are needed. A page of a crawl has no geolocation, and shares its context with other
 * pages.
 */
type Prepared = Pick<RenderContext, "session" | "evaluate"> &
  Partial<Pick<RenderContext, "grantGeolocation" | "authorizeWithDocument">>;

/**
 * Prepares the page. Extra headers are sent with every request of the page to any host, as users of puppeteer expect.
 * Clients that send secrets should allow only one host by `allowRequestPattern`.
 */
export async function preparePage(
  context: Prepared & Pick<RenderContext, "page" | "authorize">,
  parameters: PageRequest,
  hooks: FilterHooks & {
    /**
     * Whether the context's own page loads the address next. Then the request for the document can give the proxy its
     * credentials.
     */
    loadsNext?: boolean;
  } = {},
): Promise<void> {
  const { page, session } = context;
  const { viewport, userAgent, setExtraHTTPHeaders, cookies } = parameters;
  const { setJavaScriptEnabled, addStyleTag, addScriptTag } = parameters;
  const hasTags = addStyleTag !== undefined || addScriptTag !== undefined;
  // Most submitted documents fetch nothing, so they need no credentials for the proxy. The extra navigation would
  // take a quarter of the time of a small PDF.
  const { url, files } = parameters;
  if (url !== undefined || files !== undefined) {
    // After the challenge of the proxy, Chromium repeats the request for the document, but without a Cookie header of
    // the caller. So this shortcut is not used with extra headers.
    const isOrdinary = setExtraHTTPHeaders === undefined && !stopsRequests(parameters);
    const brings = hooks.loadsNext === true && isOrdinary;
    if (brings && context.authorizeWithDocument) await context.authorizeWithDocument();
    else await context.authorize();
  }
  // These calls are independent, and each takes a round trip.
  await Promise.all([
    // All emulation uses our session. When a page changes its process, its last session resets the emulation, and the
    // last session is ours. Emulation set by puppeteer's session is lost at the first address.
    emulateMedia(session, parameters),
    emulatePlace(context, parameters),
    cookies && setCookies(context, cookies, parameters.url),
    viewport && page.setViewport(definedOf(viewport)),
    userAgent && !parameters.locale && page.setUserAgent({ userAgent }),
    setExtraHTTPHeaders && page.setExtraHTTPHeaders(setExtraHTTPHeaders),
    setJavaScriptEnabled === false && page.setJavaScriptEnabled(false),
    // The site's content security policy is disabled, because the caller's own tags must work on every page.
    hasTags && page.setBypassCSP(true),
    filterRequests({ page, session }, parameters, hooks),
  ]);
}

async function emulateMedia(
  session: CDPSession,
  { emulateMediaType: media, colorScheme, reducedMotion }: PageRequest,
): Promise<void> {
  const features = [
    ...(colorScheme ? [{ name: "prefers-color-scheme", value: colorScheme }] : []),
    ...(reducedMotion ? [{ name: "prefers-reduced-motion", value: reducedMotion }] : []),
  ];
  if (media === undefined && features.length === 0) return;
  await session.send("Emulation.setEmulatedMedia", { ...(media && { media }), features });
}

async function emulatePlace(
  context: Prepared,
  { timezone: timezoneId, locale, geolocation, userAgent }: PageRequest,
): Promise<void> {
  const { session } = context;
  if (timezoneId) await session.send("Emulation.setTimezoneOverride", { timezoneId });
  if (locale) {
    await session.send("Emulation.setLocaleOverride", { locale });
    // The language in the header and in scripts is set together with the user agent.
    const named = userAgent ?? String(await context.evaluate("navigator.userAgent"));
    const override = { userAgent: named, acceptLanguage: locale };
    await session.send("Emulation.setUserAgentOverride", override);
  }
  if (geolocation) {
    await context.grantGeolocation?.();
    await session.send("Emulation.setGeolocationOverride", geolocation);
  }
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
