/**
 * The areas of the console, in the order of the navigation. Each is a chunk of its own that loads when it is opened.
 */
import type { Pages } from "../lib/pages.ts";
import type { IconName } from "./icon.tsx";

export interface Area {
  /** The first part of the path; empty for the first page. */
  path: string;
  label: string;
  icon: IconName;
  load: () => Promise<{ pages: Pages }>;
  /** Shown to administrators of the installation alone. */
  isOfAdministrators?: true;
}

export const AREAS: readonly Area[] = [
  { path: "", label: "Home", icon: "home", load: () => import("../home/pages.ts") },
  {
    path: "rendering",
    label: "Rendering",
    icon: "rendering",
    load: () => import("../rendering/pages.ts"),
  },
  { path: "crawls", label: "Crawls", icon: "crawl", load: () => import("../crawl/pages.ts") },
  {
    path: "repositories",
    label: "Repositories",
    icon: "repository",
    load: () => import("../repositories/pages.ts"),
  },
  {
    path: "oauth-clients",
    label: "OAuth clients",
    icon: "key",
    load: () => import("../oauth/pages.ts"),
  },
  { path: "apps", label: "Apps and agents", icon: "app", load: () => import("../apps/pages.ts") },
  {
    path: "webhooks",
    label: "Webhooks",
    icon: "webhook",
    load: () => import("../webhooks/pages.ts"),
  },
  {
    path: "requests",
    label: "Requests",
    icon: "request",
    load: () => import("../requests/pages.ts"),
  },
  { path: "account", label: "Account", icon: "account", load: () => import("../account/pages.ts") },
  {
    path: "operator",
    label: "Operator",
    icon: "operator",
    load: () => import("../operator/pages.ts"),
    isOfAdministrators: true,
  },
];
