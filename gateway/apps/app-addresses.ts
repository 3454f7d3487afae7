/** Where an app answers: below our own address for machines, and at an origin of its own for people. */
import { AppName } from "../../schemas/apps/app-names.ts";
import { Id } from "../../schemas/values.ts";
import type { AppOf, AskedOfApp } from "../http/locals.ts";

export interface AppAddresses {
  /** Base URL of the platform's pages and of /apps/…, with no slash at its end. */
  publicUrl: string;
  /** Parent domain of the apps' origins, with a port unless it is the scheme's default. */
  appsDomain: string;
}

const PREFIX = "/apps/";

export function machineUrlOf({ publicUrl }: AppAddresses, { accountId, app }: AppOf): string {
  return `${publicUrl}${PREFIX}${accountId}/${app}`;
}

/** The scheme is that of our own address: where that is encrypted, so are these. */
export function originOf({ publicUrl, appsDomain }: AppAddresses, of: AppOf): string {
  return `${new URL(publicUrl).protocol}//${of.app}.${of.accountId}.${appsDomain}`;
}

/** Returns the app that a request is for, with the app's part of the path; undefined when it is for none. */
export function readAppRequest(
  { publicUrl, appsDomain }: AppAddresses,
  { host = "", url = "/" }: { host: string | undefined; url: string | undefined },
): AskedOfApp | undefined {
  // Whatever port it came by, and written with a dot at its end or without: a name below the parent is never ours.
  const domain = bareHost(appsDomain);
  const parent = `.${domain}`;
  const name = bareHost(host);
  // Apps can set cookies for their parent: it shows none of our pages, but where it is our own address.
  if (name === domain && name !== new URL(publicUrl).hostname) {
    return { accountId: "", app: "", path: url, isOwnOrigin: true };
  }
  if (name.endsWith(parent)) {
    const [app = "", accountId = "", ...more] = name.slice(0, -parent.length).split(".");
    const of = more.length === 0 ? appOf(accountId, app) : undefined;
    // A host below the parent is nobody else's: what it names is an app, or nothing.
    return { ...(of ?? { accountId: "", app: "" }), path: url, isOwnOrigin: true };
  }
  if (!url.startsWith(PREFIX)) return undefined;
  const [, accountId = "", app = "", rest = ""] =
    /^\/apps\/([^/?#]*)\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  const of = appOf(accountId, app);
  if (!of) return undefined;
  return { ...of, path: rest.startsWith("/") ? rest : `/${rest}`, isOwnOrigin: false };
}

const bareHost = (host: string) => host.toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");

const appOf = (accountId: string, app: string): AppOf | undefined =>
  Id.safeParse(accountId).success && AppName.safeParse(app).success
    ? { accountId, app }
    : undefined;
