/**
 * The areas of the console, in the order of the navigation. Each area is a separate chunk that is loaded when the
 * area is opened.
 */
import type { Pages } from "../lib/router.ts";
import type { IconName } from "./navigation.tsx";

export interface Area {
  /** The first part of the area's path. Empty for the home page. */
  path: string;
  label: string;
  icon: IconName;
  load: () => Promise<{ pages: Pages }>;
  /** If true, only administrators of the installation see the area. */
  isOfAdministrators?: true;
}

const area = (
  path: string,
  label: string,
  icon: IconName,
  load: Area["load"],
  more: Pick<Area, "isOfAdministrators"> = {},
): Area => ({ path, label, icon, load, ...more });

export const AREAS: readonly Area[] = [
  area("", "Home", "home", () => import("../home/pages.ts")),
  area("rendering", "Rendering", "rendering", () => import("../rendering/pages.ts")),
  area("crawls", "Crawls", "crawl", () => import("../crawl/pages.ts")),
  area("repositories", "Repositories", "repository", () => import("../repositories/pages.ts")),
  area("oauth-clients", "OAuth clients", "key", () => import("../oauth/pages.ts")),
  area("apps", "Apps and agents", "app", () => import("../apps/pages.ts")),
  area("webhooks", "Webhooks", "webhook", () => import("../webhooks/pages.ts")),
  area("requests", "Requests", "request", () => import("../requests/pages.ts")),
  area("account", "Account", "account", () => import("../account/pages.ts")),
  area("operator", "Operator", "operator", () => import("../operator/pages.ts"), {
    isOfAdministrators: true,
  }),
];
