/**
 * Makes stacks readable: positions in the bundle become positions in the app's own files, by the bundle's source map.
 * Frames of the platform, which name files of the host, are removed.
 */
import { existsSync, readFileSync } from "node:fs";
import { type Place, sourcePlaces } from "./source-places.ts";

/** The file name that is shown for positions without a source in the map. */
const BUNDLE = "bundle.js";
/**
 * Limit of the cached positions. Code fails at the same places again, and each lookup in the map takes milliseconds.
 */
const PLACES_KEPT_MAX = 1_000;
/** Parts of the paths of the platform's own files, and of packages that npm may install beside it. */
const OWN_FILES = [new URL("../../../", import.meta.url).href, "/node_modules/"];

interface SourceMap {
  sources: string[];
  mappings: string;
}

class StackTexts {
  readonly #map: () => SourceMap | undefined;
  readonly #place: RegExp;
  readonly #bundle: string;
  readonly #names = new Map<string, string>();

  /** `bundle` is the bundle's URL, as it appears in stacks. */
  constructor(bundle: string, readMap: () => string | undefined) {
    this.#bundle = bundle;
    this.#place = new RegExp(`${RegExp.escape(bundle)}:(\\d+):(\\d+)`, "g");
    let map: SourceMap | undefined;
    let isRead = false;
    this.#map = () => {
      if (!isRead) map = parseMap(readMap());
      isRead = true;
      return map;
    };
  }

  /** Returns the text of a log line or a stack, as people should see it. */
  of(text: string): string {
    if (!text.includes("file://")) return text;
    const lines = text.split("\n");
    const own = lines.filter(
      (line) => !/^\s+at .*file:/.test(line) || !OWN_FILES.some((part) => line.includes(part)),
    );
    const kept = own.join("\n");
    if (!kept.includes(this.#bundle)) return kept;
    this.#name([...kept.matchAll(this.#place)]);
    return kept
      .replace(this.#place, (whole) => this.#names.get(whole) ?? BUNDLE)
      .replaceAll(this.#bundle, BUNDLE);
  }

  #name(matches: RegExpExecArray[]): void {
    if (this.#names.size + matches.length > PLACES_KEPT_MAX) this.#names.clear();
    const unknown = matches.filter(([whole]) => !this.#names.has(whole));
    if (unknown.length === 0) return;
    const wanted = unknown.map(
      ([, line, column]): Place => ({
        line: Number(line),
        column: Number(column) - 1,
      }),
    );
    const { sources = [], mappings = "" } = this.#map() ?? {};
    const found = sourcePlaces(mappings, wanted);
    for (const [index, [whole, line, column]] of unknown.entries()) {
      const place = found[index];
      const source = place && sources[place.source];
      const name =
        source === undefined
          ? `${BUNDLE}:${line}:${column}`
          : `${source}:${place?.line}:${(place?.column ?? 0) + 1}`;
      this.#names.set(whole, name);
    }
  }
}

let ofApp: StackTexts | undefined;

/**
 * Sets the bundle whose stacks this process makes readable. The source map is beside the bundle and is read when it
 * is first needed.
 */
export function readStacksOf(bundlePath: string, bundle: string): void {
  const path = `${bundlePath}.map`;
  const read = () => (existsSync(path) ? readFileSync(path, "utf8") : undefined);
  ofApp = new StackTexts(bundle, read);
}

/** Returns at most `charsMax` of a text, with positions in the app's own files. */
export function forPeople(text: string, charsMax: number): string {
  // A position in an app's file is shorter than one in the bundle, so a text longer than `charsMax` may still fit.
  const read = text.slice(0, LONGER * charsMax);
  return (ofApp?.of(read) ?? read).slice(0, charsMax);
}
const LONGER = 4;

/** Parses a source map. If it is invalid, the texts keep the positions in the bundle. */
function parseMap(text: string | undefined): SourceMap | undefined {
  if (text === undefined) return undefined;
  try {
    const { version, sources, mappings } = JSON.parse(text) as Record<string, unknown>;
    const isMap = version === 3 && Array.isArray(sources) && typeof mappings === "string";
    return isMap ? { sources: sources.map(String), mappings } : undefined;
  } catch {
    return undefined;
  }
}
