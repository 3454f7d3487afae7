/**
 * The command-line flags of Chromium: quiet, headless, sandboxed, with network access only through the proxy of a
 * context.
 */
import { PAGE_HEAP_MIB_MAX } from "../../../../schemas/limits.ts";

// No proxy listens at this address. Contexts name their own proxies, so requests without a context fail.
const NO_PROXY = "http://127.0.0.1:9";

const EGRESS = [
  // Without this flag Chromium connects to loopback and link-local addresses (cloud metadata) without the proxy.
  "--proxy-bypass-list=<-loopback>",
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
  "--dns-prefetch-disable",
  // WebRTC cannot use an HTTP proxy. The headless shell reads the first of these two flags, the full browser the
  // second.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--disable-quic",
];

const QUIET = [
  "--no-first-run",
  "--no-default-browser-check",
  "--disable-background-networking",
  "--disable-breakpad",
  "--disable-client-side-phishing-detection",
  "--disable-component-update",
  "--disable-crash-reporter",
  "--disable-default-apps",
  "--disable-domain-reliability",
  "--disable-extensions",
  "--disable-sync",
  "--metrics-recording-only",
  "--no-pings",
  "--password-store=basic",
  "--use-mock-keychain",
];

const QUIET_FEATURES = [
  "MediaRouter",
  "OptimizationHints",
  // Without this entry, Chromium would prefetch pages that a page asks to prerender.
  "Prerender2FallbackPrefetchSpecRules",
  "Translate",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "WebUIOmniboxPopup",
];

/**
 * Disables prefetching by speculation rules: nobody follows the links, and each prefetch is one more request to a
 * host.
 */
const NO_PREFETCH =
  "PrefetchMultipleActiveSetSizeLimitForBase:prefetch_multiple_active_set_size_limit_for_base_value/0";

/**
 * Runs the network service in the browser's own process. On Linux neither of the two has a sandbox, so the separate
 * process protects nothing there. It was resident with 68 MB, and took 3 to 6 ms of the 200 ms of a small PDF by address.
 */
const NETWORK_IN_PROCESS = "NetworkServiceInProcess2";

const ENABLED = process.platform === "linux" ? [NO_PREFETCH, NETWORK_IN_PROCESS] : [NO_PREFETCH];

const RENDERING = [
  "--headless",
  "--disable-backgrounding-occluded-windows",
  "--disable-background-timer-throttling",
  "--disable-renderer-backgrounding",
  "--disable-hang-monitor",
  "--disable-gpu",
  "--disable-software-rasterizer",
  // Makes the layout independent of font hinting and the screen's colour profile.
  "--font-render-hinting=none",
  "--force-color-profile=srgb",
  "--hide-scrollbars",
  "--mute-audio",
  `--js-flags=--max-old-space-size=${PAGE_HEAP_MIB_MAX}`,
];

/** Options of a browser that a client controls by the DevTools protocol. Its pages may open other pages. */
export interface DrivenBrowser {
  /** The proxy of the default context. */
  proxyServer: string;
}

/** Keeps the storage of the default context in memory. On disk, pages could fill it. */
const DRIVEN = ["--incognito"];
const NOT_DRIVEN = ["--block-new-web-contents"];

export function chromiumFlags({
  profile,
  smallSharedMemory,
  driven,
}: {
  profile: string;
  smallSharedMemory: boolean;
  driven?: DrivenBrowser | undefined;
}) {
  return [
    `--proxy-server=${driven?.proxyServer ?? NO_PROXY}`,
    ...EGRESS,
    ...(driven ? DRIVEN : NOT_DRIVEN),
    ...QUIET,
    ...RENDERING,
    `--disable-features=${QUIET_FEATURES.join()}`,
    `--enable-features=${ENABLED.join()}`,
    ...(smallSharedMemory ? ["--disable-dev-shm-usage"] : []),
    "--remote-debugging-pipe",
    `--user-data-dir=${profile}`,
    "about:blank",
  ];
}
