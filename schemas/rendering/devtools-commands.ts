/** The commands of the DevTools protocol that sessions offer; cdp-filter.ts explains the reasons. */

/** Domains whose commands act on pages alone. */
export const PAGE_DOMAINS: ReadonlySet<string> = new Set([
  ...[
    "Accessibility",
    "Animation",
    "Audits",
    "CSS",
    "CacheStorage",
    "Console",
    "DOM",
    "DOMDebugger",
  ],
  ...[
    "DOMSnapshot",
    "DOMStorage",
    "Debugger",
    "DeviceOrientation",
    "Emulation",
    "EventBreakpoints",
  ],
  ...[
    "Fetch",
    "HeadlessExperimental",
    "HeapProfiler",
    "IO",
    "IndexedDB",
    "Input",
    "Inspector",
    "Log",
  ],
  ...["Media", "Network", "Overlay", "Page", "Performance", "PerformanceTimeline", "Profiler"],
  ...["Runtime", "Schema", "ServiceWorker", "WebAudio", "WebAuthn"],
]);

const FILES = "a session reads and writes no files of its machine";
const OLD = "it is deprecated; use Fetch";
const UNBOUNDED = "a recording takes room of the machine without a bound";

/** Commands of the page domains that are refused, with the reason. */
export const REFUSED_COMMANDS: ReadonlyMap<string, string> = new Map([
  ["DOM.setFileInputFiles", FILES],
  ["DOM.getFileInfo", FILES],
  ["Page.startScreenRecording", UNBOUNDED],
  ["Page.stopScreenRecording", UNBOUNDED],
  ["Network.setRequestInterception", OLD],
  ["Network.continueInterceptedRequest", OLD],
  ["Network.getResponseBodyForInterception", OLD],
  ["Network.takeResponseBodyForInterceptionAsStream", OLD],
]);

/** Commands that are allowed although their domain reaches beyond pages. */
export const ALLOWED_COMMANDS: ReadonlySet<string> = new Set([
  ...of("Browser", "cancelDownload close getVersion getWindowBounds getWindowForTarget"),
  ...of("Browser", "grantPermissions resetPermissions setContentsSize setDownloadBehavior"),
  ...of("Browser", "setPermission setWindowBounds"),
  ...of("Memory", "forciblyPurgeJavaScriptMemory getDOMCounters"),
  ...of("Preload", "disable enable"),
  ...of("Security", "disable enable setIgnoreCertificateErrors"),
  ...of("Storage", "clearCookies clearDataForOrigin clearDataForStorageKey getCookies setCookies"),
  ...of("Storage", "getStorageKey getStorageKeyForFrame getUsageAndQuota"),
  ...of(
    "Target",
    "activateTarget attachToBrowserTarget attachToTarget autoAttachRelated closeTarget",
  ),
  ...of("Target", "createBrowserContext createTarget detachFromTarget disposeBrowserContext"),
  ...of("Target", "getBrowserContexts getTargetInfo getTargets setAutoAttach setDiscoverTargets"),
  ...of("Tracing", "end getCategories recordClockSyncMarker start"),
]);

/** Returns whether sessions offer the command. Its parameters are checked separately. */
export function isOffered(method: string): boolean {
  const [domain = ""] = method.split(".", 1);
  if (REFUSED_COMMANDS.has(method)) return false;
  return PAGE_DOMAINS.has(domain) || ALLOWED_COMMANDS.has(method);
}

function of(domain: string, commands: string): string[] {
  return commands.split(" ").map((command) => `${domain}.${command}`);
}
