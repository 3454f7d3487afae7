/** The addresses of an app: a path below our own address for machines, and its own origin for people. */
import { AppName } from "../../schemas/apps/app-names.ts";
import { Id } from "../../schemas/values.ts";
import type { AppOf, AppTarget } from "../http/locals.ts";
import type { AppPorts } from "./app-ports.ts";

export interface AppAddresses {
  /** Base URL of the platform's pages and of /apps/…, with no slash at its end. */
  publicUrl: string;
  /** Parent domain of the apps' origins, with a port unless it is the scheme's default. */
  appsDomain: string;
  /** On a single machine: the ports of apps. */
  ports?: AppPorts | undefined;
}

const PREFIX = "/apps/";

export function machineUrlOf({ publicUrl }: AppAddresses, { accountId, app }: AppOf): string {
  return `${publicUrl}${PREFIX}${accountId}/${app}`;
}

/** The app's address for people. */
export function originOf(addresses: AppAddresses, of: AppOf): string {
  const port = addresses.ports?.portOf(of);
  return port === undefined ? domainOriginOf(addresses, of) : `http://localhost:${port}`;
}

/** The scheme is that of our own address: where that is encrypted, so are these. */
function domainOriginOf({ publicUrl, appsDomain }: AppAddresses, of: AppOf): string {
  return `${new URL(publicUrl).protocol}//${of.app}.${of.accountId}.${appsDomain}`;
}

/** The base URL that a request was sent to. */
export function calledBaseOf(addresses: AppAddresses, asked: Omit<AppTarget, "path">): string {
  if (!asked.isOwnOrigin) return machineUrlOf(addresses, asked);
  return asked.cookiePrefix === undefined
    ? domainOriginOf(addresses, asked)
    : originOf(addresses, asked);
}

/**
 * Returns the base URL that the app's code sees. It is always the app's own origin, even if the request used a path
 * of the platform.
 */
export function seenOriginOf(addresses: AppAddresses, asked: Omit<AppTarget, "path">): string {
  return asked.isOwnOrigin ? calledBaseOf(addresses, asked) : originOf(addresses, asked);
}

interface AddressedRequest {
  host: string | undefined;
  url: string | undefined;
  /** The port of this machine that it came by. */
  port?: number | undefined;
}

/** Returns the app that a request is for, with the app's part of the path; undefined when it is for none. */
export function readAppRequest(
  { publicUrl, appsDomain, ports }: AppAddresses,
  { host = "", url = "/", port }: AddressedRequest,
): AppTarget | undefined {
  const atPort = ports?.appAt(port);
  if (atPort) {
    // By any other name, browsers would send and store cookies of that name: those of the platform.
    const isOwn = host.toLowerCase() === `localhost:${port}`;
    const of = isOwn ? appOf(atPort.accountId, atPort.app) : undefined;
    const cookiePrefix = `tl${atPort.cookieKey}-`;
    return { ...(of ?? NONE), path: url, isOwnOrigin: true, cookiePrefix };
  }
  // Whatever port it came by, and written with a dot at its end or without: a name below the parent is never ours.
  const domain = bareHost(appsDomain);
  const parent = `.${domain}`;
  const name = bareHost(host);
  // Apps can set cookies for their parent: it shows none of our pages, but where it is our own address.
  if (name === domain && name !== new URL(publicUrl).hostname) {
    return { ...NONE, path: url, isOwnOrigin: true };
  }
  if (name.endsWith(parent)) {
    const [app = "", accountId = "", ...more] = name.slice(0, -parent.length).split(".");
    const of = more.length === 0 ? appOf(accountId, app) : undefined;
    // A host below the parent is nobody else's: what it names is an app, or nothing.
    return { ...(of ?? NONE), path: url, isOwnOrigin: true };
  }
  if (!url.startsWith(PREFIX)) return undefined;
  const [, accountId = "", app = "", rest = ""] =
    /^\/apps\/([^/?#]*)\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  const of = appOf(accountId, app);
  if (!of) return undefined;
  return { ...of, path: rest.startsWith("/") ? rest : `/${rest}`, isOwnOrigin: false };
}

/** No app: the request gets a 404, and nobody else serves it. */
const NONE = { accountId: "", app: "" };

const bareHost = (host: string) => host.toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");

const appOf = (accountId: string, app: string): AppOf | undefined =>
  Id.safeParse(accountId).success && AppName.safeParse(app).success
    ? { accountId, app }
    : undefined;
