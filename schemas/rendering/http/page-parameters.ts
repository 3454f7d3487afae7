/** The common parameters of endpoints that load a page: its source, load options, and wait conditions. */
import { z } from "zod";
import { ExtraHeaders, fieldValue } from "../../http/header-fields.ts";
import { shapedLike } from "../../http/shaped-like.ts";
import {
  CREDENTIAL_CHARS_MAX,
  DEVICE_SCALE_FACTOR_MAX,
  GOTO_TIMEOUT_MS,
  GOTO_TIMEOUT_MS_MAX,
  PATTERN_CHARS_MAX,
  PATTERNS_MAX,
  SELECTOR_CHARS_MAX,
  TAG_CHARS_MAX,
  TAGS_MAX,
  USER_AGENT_CHARS_MAX,
  VIEWPORT_PX_MAX,
  WAIT_TIMEOUT_MS,
  WAIT_TIMEOUT_MS_MAX,
} from "../../limits.ts";
import {
  FAILING_STATUSES_MAX,
  FUNCTION_CHARS_MAX,
  FUNCTION_POLLING_MS,
  FUNCTION_POLLING_MS_MAX,
  FUNCTION_POLLING_MS_MIN,
  SETTLE_MS,
  SETTLE_MS_MAX,
} from "../limits.ts";
import { Cookies } from "./cookies.ts";
import { HttpUrl, SubmittedHtml } from "./document-source.ts";
import { JobWebhook } from "./job-webhook.ts";
import { Files, missingFiles, type PageFile, type Source } from "./page-files.ts";
import { pageWorldFields } from "./page-world.ts";
import { compilePattern } from "./request-pattern.ts";

export const RESOURCE_TYPES = [
  "document",
  "stylesheet",
  "image",
  "media",
  "font",
  "script",
  "texttrack",
  "xhr",
  "fetch",
  "prefetch",
  "eventsource",
  "websocket",
  "manifest",
  "signedexchange",
  "ping",
  "cspviolationreport",
  "preflight",
  "other",
] as const;
export const ResourceType = z.enum(RESOURCE_TYPES);
export type ResourceType = z.output<typeof ResourceType>;

const ResourceTypes = z.array(ResourceType).max(RESOURCE_TYPES.length);

const Pattern = z
  .string()
  .min(1)
  .max(PATTERN_CHARS_MAX)
  .superRefine((text, context) => {
    try {
      compilePattern(text);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      context.addIssue({
        code: "custom",
        message: `Expected a regular expression in RE2 syntax, as /expression/flags or bare: ${error.message}`,
      });
    }
  });
const Patterns = z.array(Pattern).max(PATTERNS_MAX);

export const LoadEvent = z.enum([
  "settled",
  "load",
  "domcontentloaded",
  "networkidle0",
  "networkidle2",
]);
export type LoadEvent = z.output<typeof LoadEvent>;

const GotoOptions = z
  .strictObject({
    waitUntil: z
      .union([LoadEvent, z.array(LoadEvent).min(1).max(LoadEvent.options.length)], {
        error: `Expected one of ${LoadEvent.options.join(", ")}, or an array of them`,
      })
      .optional()
      .describe(
        "Event or events after which the page counts as loaded. settled, which a page has when absent: its load event, then network, document, finite animations and canvases are quiet. networkidle0 and networkidle2: loaded, then 500 ms with at most 0 or 2 requests in flight. Crawls wait for domcontentloaded when absent",
      ),
    settleTimeout: z
      .int()
      .min(1)
      .max(SETTLE_MS_MAX)
      .default(SETTLE_MS)
      .describe("Maximum time that `settled` waits after the load event, in milliseconds"),
    timeout: z
      .int()
      .min(1)
      .max(GOTO_TIMEOUT_MS_MAX)
      .default(GOTO_TIMEOUT_MS)
      .describe("Time limit for loading, in milliseconds"),
    referer: HttpUrl.optional().describe("Referer header of the request for the page"),
    referrerPolicy: z
      .enum([
        "no-referrer",
        "no-referrer-when-downgrade",
        "origin",
        "origin-when-cross-origin",
        "same-origin",
        "strict-origin",
        "strict-origin-when-cross-origin",
        "unsafe-url",
      ])
      .optional(),
  })
  .meta({
    title: "GotoOptions",
    description: "How the page is loaded; applies to url and to html",
  });

const Viewport = z
  .strictObject({
    width: z.int().min(1).max(VIEWPORT_PX_MAX),
    height: z.int().min(1).max(VIEWPORT_PX_MAX),
    deviceScaleFactor: z.number().min(0.1).max(DEVICE_SCALE_FACTOR_MAX).optional(),
    isMobile: z.boolean().optional(),
    hasTouch: z.boolean().optional(),
    isLandscape: z.boolean().optional(),
  })
  .meta({
    title: "Viewport",
    description: "Size of the window in CSS pixels; 1920 × 1080 when absent",
  });

const WaitForSelector = z
  .strictObject(
    {
      selector: z.string().min(1).max(SELECTOR_CHARS_MAX).describe("CSS selector"),
      timeout: z.int().min(1).max(WAIT_TIMEOUT_MS_MAX).default(WAIT_TIMEOUT_MS),
      visible: z.boolean().optional().describe("Waits until a matching element is visible"),
      hidden: z.boolean().optional().describe("Waits until no matching element is visible"),
    },
    { error: shapedLike({ selector: "#ready" }) },
  )
  .refine(({ visible, hidden }) => !(visible && hidden), {
    path: ["hidden"],
    error: "Expected at most one of visible and hidden",
  })
  .meta({ title: "WaitForSelector" });

const tagFields = {
  content: z.string().max(TAG_CHARS_MAX).optional(),
  url: HttpUrl.optional(),
};
const oneSource = {
  error: "Expected exactly one of content and url",
  when: ({ issues }: { issues: readonly unknown[] }) => issues.length === 0,
};
const hasOneSource = (tag: { content?: string | undefined; url?: string | undefined }) =>
  (tag.content === undefined) !== (tag.url === undefined);

const StyleTag = z.strictObject(tagFields).refine(hasOneSource, oneSource);
const ScriptTag = z
  .strictObject({
    ...tagFields,
    id: z.string().min(1).max(CREDENTIAL_CHARS_MAX).optional(),
    type: z.string().max(CREDENTIAL_CHARS_MAX).optional().describe('For instance "module"'),
  })
  .refine(hasOneSource, oneSource);

const Credential = z.string().min(1).max(CREDENTIAL_CHARS_MAX);

/** Fields to spread into the strict object of an endpoint. Add `pageRules` as a `check` of that object. */
export const pageParameterFields = {
  url: HttpUrl.optional().describe("Address of the page; give exactly one of url, html and files"),
  html: SubmittedHtml.optional().describe(
    "The document itself; exactly one of url, html and files. Its origin is about:blank, so relative addresses lead nowhere",
  ),
  addStyleTag: z
    .array(StyleTag)
    .max(TAGS_MAX)
    .optional()
    .describe("Style sheets to add after the page has loaded"),
  addScriptTag: z
    .array(ScriptTag)
    .max(TAGS_MAX)
    .optional()
    .describe("Scripts to run after the page has loaded; ignored if JavaScript is off"),
  setExtraHTTPHeaders: ExtraHeaders.optional(),
  cookies: Cookies.optional().describe("Cookies to set before the page loads"),
  authenticate: z
    .strictObject({ username: Credential, password: Credential.meta({ secret: true }) })
    .optional()
    .describe("Credentials for HTTP authentication at the origin of url; with html, at any host"),
  viewport: Viewport.optional(),
  userAgent: fieldValue(USER_AGENT_CHARS_MAX)
    .min(1)
    .optional()
    .describe("The browser's user agent, in the request header and in scripts"),
  gotoOptions: GotoOptions.optional(),
  goToOptions: GotoOptions.optional().describe("Alias of gotoOptions"),
  waitForSelector: WaitForSelector.optional().describe(
    "Element to wait for once the page has loaded",
  ),
  waitForTimeout: z
    .int()
    .min(0)
    .max(WAIT_TIMEOUT_MS_MAX)
    .optional()
    .describe("Milliseconds to wait after all other waits"),
  actionTimeout: z
    .int()
    .min(1)
    .max(WAIT_TIMEOUT_MS_MAX)
    .optional()
    .describe("Time limit for the capture once the page is ready, in milliseconds"),
  bestAttempt: z
    .boolean()
    .optional()
    .describe("Continues with the page as it is when a wait fails or times out"),
  emulateMediaType: z.enum(["screen", "print"]).optional().describe("CSS media type of the page"),
  setJavaScriptEnabled: z
    .boolean()
    .optional()
    // No default: generated Python sends defaults, and crawls without a browser refuse the field.
    .describe("Whether the page's scripts run; they run when absent"),
  rejectResourceTypes: ResourceTypes.optional().describe(
    "Requests of these types fail; never the one for the page itself",
  ),
  rejectRequestPattern: Patterns.optional().describe(
    "Requests to addresses one of these matches fail; goes before what is allowed",
  ),
  allowResourceTypes: ResourceTypes.optional().describe(
    "Requests of other types fail; never the one for the page itself",
  ),
  allowRequestPattern: Patterns.optional().describe(
    "Requests to addresses none of these matches fail; never the one for the page itself",
  ),
};

const WaitForFunction = z.strictObject(
  {
    function: z
      .string()
      .min(1)
      .max(FUNCTION_CHARS_MAX)
      .describe("JavaScript: an expression, or a function (also async) that is called"),
    timeout: z.int().min(1).max(WAIT_TIMEOUT_MS_MAX).default(WAIT_TIMEOUT_MS),
    polling: z
      .int()
      .min(FUNCTION_POLLING_MS_MIN)
      .max(FUNCTION_POLLING_MS_MAX)
      .default(FUNCTION_POLLING_MS)
      .describe("Milliseconds between two calls of the function"),
  },
  { error: shapedLike({ function: "() => window.isReady" }) },
);
export type WaitForFunction = z.output<typeof WaitForFunction>;

/**
 * The additional fields of endpoints that create one document from a page. Crawls have their own rules for these
 * fields.
 */
export const documentFields = {
  ...pageWorldFields,
  files: Files.optional(),
  webhook: JobWebhook.optional().describe(
    "Where the end of the job is posted, signed; only with the header field Prefer: respond-async",
  ),
  waitForFunction: WaitForFunction.optional().describe(
    "JavaScript to call in the page, after waitForSelector, until it gives something true",
  ),
  report: z
    .boolean()
    .optional()
    .meta({ default: false })
    .describe(
      "Answer JSON with `report` beside `result`: what the page did while it loaded. A PDF or a picture is then text in base64",
    ),
  scrollPage: z
    .boolean()
    .optional()
    .meta({ default: false })
    .describe("Scrolls to the end of the page and back first, so that lazy content loads"),
  failOnStatus: z
    .array(
      z.union([z.int().min(400).max(599), z.enum(["4xx", "5xx"])], {
        error: 'Expected a status from 400 to 599, "4xx" or "5xx"',
      }),
    )
    .min(1)
    .max(FAILING_STATUSES_MAX)
    .optional()
    .describe(
      "Statuses of the page itself that are refused; others are shown as the site has them",
    ),
};
export type FailOnStatus = z.output<typeof documentFields.failOnStatus>;

interface PageSource {
  url?: string | undefined;
  userAgent?: string | undefined;
  setExtraHTTPHeaders?: Record<string, string> | undefined;
  html?: string | undefined;
  files?: readonly PageFile[] | undefined;
  sources?: readonly Source[] | undefined;
  cookies?: { url?: string | undefined; domain?: string | undefined }[] | undefined;
  gotoOptions?: z.output<typeof GotoOptions> | undefined;
  goToOptions?: z.output<typeof GotoOptions> | undefined;
}

/** Checks rules that involve several fields. Use it as a `check` of an endpoint's object. */
export function pageRules({ value, issues }: z.core.ParsePayload<PageSource>): void {
  const fault = (path: (string | number)[], message: string) =>
    issues.push({ code: "custom", path, message, input: value });
  // If there is an unknown field, it may be a misspelt url or html. It has its own error message, so a missing source
  // is not reported too.
  const misspelt = issues.some(({ code, path }) => code === "unrecognized_keys" && !path?.length);
  // With several sources, the files belong to the sources and are no source themselves.
  const { url, html, sources, files } = value;
  const given = [url, html, sources ?? files].filter((source) => source !== undefined);
  if (given.length > 1 || (given.length === 0 && !misspelt)) {
    fault(
      ["url"],
      `Expected exactly one of ${sources ? "url, html and sources" : "url, html and files"}`,
    );
  }
  if (issues.length === 0) {
    for (const { path, message } of missingFiles(value)) fault(path, message);
  }
  if (value.gotoOptions !== undefined && value.goToOptions !== undefined) {
    fault(["goToOptions"], "Expected at most one of gotoOptions and goToOptions");
  }
  for (const [name, message] of unsentFields(value)) fault(["setExtraHTTPHeaders", name], message);
  const named = userAgentField(value);
  if (named !== undefined) {
    const at = ["setExtraHTTPHeaders", named[0]];
    if (value.userAgent !== undefined)
      fault(at, "Expected the user agent once: remove this field or userAgent");
    else if (named[1].length === 0 || named[1].length > USER_AGENT_CHARS_MAX) {
      fault(at, `Expected 1 to ${USER_AGENT_CHARS_MAX} characters`);
    }
  }
  value.cookies?.forEach((cookie, index) => {
    if (cookie.url === undefined && cookie.domain === undefined && value.url === undefined) {
      fault(
        ["cookies", index, "domain"],
        "Expected domain or url in each cookie, because the page has no url",
      );
    }
  });
}

/** Returns the parameters in normal form, which is valid input again. */
export function normalizePage<P extends PageSource>({ goToOptions, ...parameters }: P) {
  const gotoOptions = parameters.gotoOptions ?? goToOptions;
  const spelled = gotoOptions === undefined ? parameters : { ...parameters, gotoOptions };
  const named = userAgentField(parameters);
  if (named === undefined) return spelled;
  // The header becomes the parameter `userAgent`. Browsers set this header from their own user agent, which scripts
  // see too and which overrides an added header.
  const [name, userAgent] = named;
  const { [name]: _, ...setExtraHTTPHeaders } = parameters.setExtraHTTPHeaders ?? {};
  return { ...spelled, userAgent, setExtraHTTPHeaders };
}

/** Header fields that make a browser refuse to send the request. */
const UNSENT: Record<string, string> = {
  referer: "Expected no such field: gotoOptions.referer is the place for it",
  cookie2: "Expected a header that browsers send: use cookies",
  "set-cookie": "Expected no such field: cookies is the place for it",
};

/**
 * Returns the extra header fields that a browser does not send, in the spelling of the request, each with a message
 * that names the valid alternative.
 */
export function unsentFields({ setExtraHTTPHeaders = {} }: PageSource): [string, string][] {
  return Object.keys(setExtraHTTPHeaders).flatMap((name): [string, string][] => {
    const message = UNSENT[name.toLowerCase()];
    return message === undefined ? [] : [[name, message]];
  });
}

/** Returns the extra header field `User-Agent`, in the spelling of the request, and its value. */
export function userAgentField({ setExtraHTTPHeaders = {} }: PageSource) {
  return Object.entries(setExtraHTTPHeaders).find(([name]) => name.toLowerCase() === "user-agent");
}
