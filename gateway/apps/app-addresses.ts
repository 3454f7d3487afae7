/** The addresses of an app: a path below the platform's URL for machines, and a separate origin for people. */
import { AppName } from "../../schemas/apps/app-names.ts";
import { Id } from "../../schemas/values.ts";
import type { AppOf, AppTarget } from "../http/locals.ts";
import type { AppPorts } from "./app-ports.ts";

export interface AppAddresses {
  /** Base URL of the platform's pages and of /apps/…, with no slash at its end. */
  publicUrl: string;
  /** Parent domain of the apps' origins. It includes the port, unless that is the default of the scheme. */
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

/** The origin has the scheme of the platform's own URL, so it is encrypted if that URL is. */
function domainOriginOf({ publicUrl, appsDomain }: AppAddresses, of: AppOf): string {
  return `${new URL(publicUrl).protocol}//${of.app}.${of.accountId}.${appsDomain}`;
}

/** Returns the base URL that a request was sent to. */
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
  /** The port of this machine at which the request arrived. */
  port?: number | undefined;
}

/**
 * Returns the app that a request addresses, with the app's part of the path. Returns undefined if the request
 * addresses no app.
 */
export function readAppRequest(
  { publicUrl, appsDomain, ports }: AppAddresses,
  { host = "", url = "/", port }: AddressedRequest,
): AppTarget | undefined {
  const atPort = ports?.appAt(port);
  if (atPort) {
    // At any other host name, browsers would send and store that host's cookies, which are those of the platform. So
    // only `localhost` is accepted.
    const isOwn = host.toLowerCase() === `localhost:${port}`;
    const of = isOwn ? appOf(atPort.accountId, atPort.app) : undefined;
    const cookiePrefix = `tl${atPort.cookieKey}-`;
    return { ...(of ?? NONE), path: url, isOwnOrigin: true, cookiePrefix };
  }
  // A name below the parent domain never belongs to the platform itself, whatever the port, and with or without a dot
  // at its end.
  const domain = bareHost(appsDomain);
  const parent = `.${domain}`;
  const name = bareHost(host);
  // Apps can set cookies for their parent domain. So the parent domain shows no page of the platform, unless it is
  // the platform's own host name.
  if (name === domain && name !== new URL(publicUrl).hostname) {
    return { ...NONE, path: url, isOwnOrigin: true };
  }
  if (name.endsWith(parent)) {
    const [app = "", accountId = "", ...more] = name.slice(0, -parent.length).split(".");
    const of = more.length === 0 ? appOf(accountId, app) : undefined;
    // Any host below the parent domain belongs to an app. If it names no existing app, the request gets a 404.
    return { ...(of ?? NONE), path: url, isOwnOrigin: true };
  }
  if (!url.startsWith(PREFIX)) return undefined;
  const [, accountId = "", app = "", rest = ""] =
    /^\/apps\/([^/?#]*)\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  const of = appOf(accountId, app);
  if (!of) return undefined;
  return { ...of, path: rest.startsWith("/") ? rest : `/${rest}`, isOwnOrigin: false };
}

/** Stands for no app: the request gets a 404, and no other route answers it. */
const NONE = { accountId: "", app: "" };

const bareHost = (host: string) => host.toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");

const appOf = (accountId: string, app: string): AppOf | undefined =>
  Id.safeParse(accountId).success && AppName.safeParse(app).success
    ? { accountId, app }
    : undefined;
