/** The repository's rule for imports: says which folder ("room") may import from which other. */
import { posix } from "node:path";
import { isTest, type SourceFile } from "./tidy-files.ts";

const AREAS = new Set(["account", "rendering", "crawl", "repositories", "oauth", "apps"]);
/** The folders of `actors/` that each area may import from, in addition to its own folders and the shared ones. */
const OTHER_AREAS: Record<string, string[]> = {
  rendering: ["actors/account/lib/"],
  crawl: ["actors/account/lib/", "actors/rendering/lib/"],
  repositories: ["actors/account/lib/"],
  oauth: ["actors/account/lib/"],
  apps: ["actors/account/lib/"],
};
/** Folders of `actors/` that every area may import from. These folders import only from each other. */
const ACTORS_SHARED = ["actors/runtime/", "actors/egress/"];
/** ACTORS_WIRING are the files that connect all actor kinds, and so may import from all folders. */
const ACTORS_MAIN = "actors/main.ts";
const ACTORS_WIRING = new Set([ACTORS_MAIN, "actors/apps/open-agents.ts"]);
/** Code that runs inside app processes. Other code may import only one file of it: APP_CODE_DOOR. */
const APP_CODE = ["actors/apps/package/", "actors/apps/process/"];
const APP_CODE_DOOR = "actors/apps/process/arguments.ts";

/**
 * Files of `actors/` that the gateway may import: the runtime's client, stored formats, and work that the gateway
 * does itself.
 */
const GATEWAY_TAKES = new Set([
  "actors/apps/lib/app-secrets/secret-box.ts",
  "actors/apps/lib/app-bodies/body-blobs.ts",
  "actors/runtime/calls/actor-client.ts",
  "actors/runtime/calls/call-places.ts",
  "actors/runtime/bus/answer.ts",
  "actors/runtime/store/blob-store.ts",
  "actors/runtime/workers/define-worker.ts",
  "actors/runtime/bus/live.ts",
  "actors/runtime/lib/fair-semaphore.ts",
  "actors/runtime/lib/semaphore.ts",
  "actors/runtime/lib/shared-slots.ts",
  "actors/runtime/store/stored-lines.ts",
  "actors/runtime/lib/time-limit.ts",
  "actors/runtime/lib/turn-queue.ts",
]);
/** Folders of `gateway/` that every area may import from. They import from no area. */
const GATEWAY_SHARED = new Set(["http", "pages", "platform"]);
/** Packages that schemas may import. re2js is needed because a schema must refuse an invalid pattern in a request. */
const SCHEMA_PACKAGES = new Set(["zod", "re2js"]);

/**
 * Allows imports in one direction only: gateway → schemas, and actors → schemas. Areas share code only through
 * schemas.
 */
export function importsPointOneWay({ path, text }: SourceFile): string[] {
  if (isTest(path)) return [];
  return importsOf(path, text)
    .filter((target) => !mayImport(path, target))
    .map((target) => `${path} imports ${target}`);
}

/**
 * Reports every cycle of files that import each other, and every cycle of folders in `actors/`. Imports of types
 * count too. Code in a cycle can only be understood as a whole.
 */
export function importsHaveNoCircle(sources: readonly SourceFile[]): string[] {
  const files = sources.filter(({ path }) => !isTest(path));
  const ofFiles = new Map<string, Set<string>>();
  const ofRooms = new Map<string, Set<string>>();
  for (const { path, text } of files) {
    const targets = importsOf(path, text).filter((target) => /^[a-z]+\//.test(target));
    ofFiles.set(path, new Set(targets));
    if (!path.startsWith("actors/") || ACTORS_WIRING.has(path)) continue;
    const rooms = ofRooms.get(roomOf(path)) ?? new Set();
    ofRooms.set(roomOf(path), rooms);
    for (const target of targets) {
      if (target.startsWith("actors/") && roomOf(target) !== roomOf(path))
        rooms.add(roomOf(target));
    }
  }
  return [...circlesOf(ofFiles), ...circlesOf(ofRooms)].map(
    (circle) => `circle: ${circle.toSorted().join(", ")}`,
  );
}

/** Returns the strongly connected components of more than one node (Tarjan's algorithm). */
function circlesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const circles: string[][] = [];
  const numbers = new Map<string, number>();
  const stack: string[] = [];
  for (const node of edges.keys()) if (!numbers.has(node)) visit(node);
  return circles;

  function visit(node: string): number {
    const number = numbers.size;
    let low = number;
    numbers.set(node, number);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!numbers.has(next)) low = Math.min(low, visit(next));
      else if (stack.includes(next)) low = Math.min(low, numbers.get(next) ?? low);
    }
    if (low === number) {
      const circle = stack.splice(stack.indexOf(node));
      if (circle.length > 1) circles.push(circle);
    }
    return low;
  }
}

/** Returns the imports of a file: for our own files the path from the root, otherwise the package's name. */
export function importsOf(path: string, text: string): string[] {
  const specifiers = text.matchAll(
    /^(?:import|export)\s(?:[^"';]*?\sfrom\s)?"([^"]+)"|\bimport\(\s*"([^"]+)"/gm,
  );
  return Array.from(specifiers, ([, named, dynamic]) => named ?? dynamic ?? "").map((specifier) =>
    specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : specifier,
  );
}

function mayImport(path: string, target: string): boolean {
  const source = path.split("/")[0];
  const folder = /^(schemas|actors|gateway|deploy|scripts)\//.exec(target)?.[1];
  if (source === "schemas") return folder === "schemas" || SCHEMA_PACKAGES.has(target);
  if (isIn(APP_CODE, path))
    return folder === undefined || folder === "schemas" || isIn(APP_CODE, target);
  // Files that start the platform may import everything except the code of app processes.
  if (isIn(APP_CODE, target))
    return target === APP_CODE_DOOR && (path === ACTORS_MAIN || path.startsWith("actors/apps/"));
  if (folder === undefined || folder === "schemas" || source === "deploy" || source === "scripts")
    return true;
  if (source === "gateway")
    return folder === "gateway" ? mayGatewayImport(path, target) : GATEWAY_TAKES.has(target);
  return source === "actors" && folder === "actors" && mayActorsImport(path, target);
}

function mayGatewayImport(path: string, target: string): boolean {
  // Files directly in `gateway/` connect the areas, so they may import everything there.
  if (path.split("/").length === 2) return true;
  const [from, to] = [path.split("/")[1] ?? "", target.split("/")[1] ?? ""];
  if (from === to || GATEWAY_SHARED.has(to)) return true;
  return AREAS.has(from) && to === "account";
}

function mayActorsImport(path: string, target: string): boolean {
  if (ACTORS_WIRING.has(path)) return true;
  if (isIn(ACTORS_SHARED, target)) return true;
  if (isIn(ACTORS_SHARED, path)) return false;
  const area = areaOf(path);
  if (area === undefined) return false;
  if (roomOf(path) === roomOf(target)) return true;
  return isIn([`actors/${area}/lib/`, ...(OTHER_AREAS[area] ?? [])], target);
}

/** Returns the area of a file. Returns undefined for shared code. */
function areaOf(path: string): string | undefined {
  const area = path.split("/")[1] ?? "";
  return AREAS.has(area) ? area : undefined;
}

/**
 * Returns the folder of a file that counts as a unit: the folder of an actor kind, or `workers/<name>` or
 * `lib/<name>` of an area.
 */
function roomOf(path: string): string {
  const [top, area, name = "", inner = ""] = path.split("/");
  const room = name === "lib" || name === "workers" ? `${name}/${inner}` : name;
  return `${top}/${area}/${room}`;
}

function isIn(folders: readonly string[], path: string): boolean {
  return folders.some((folder) => path.startsWith(folder));
}
