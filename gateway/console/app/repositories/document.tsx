/**
 * Shows Markdown documents of a repository. Their relative links and pictures lead to other files of the repository.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { queryOf, send } from "../lib/rest.ts";
import { useLoaded } from "../lib/use-rest.ts";
import type { WireTreeEntry } from "../lib/wire.ts";
import { Link } from "../parts/link.tsx";
import { Markdown } from "../parts/markup.tsx";
import { Card, Read } from "../parts/page.tsx";
import { SourceText } from "../parts/source.tsx";
import { encodePath, type RepoPlace, useRepo } from "./repo-place.tsx";

interface DocumentProps {
  /** The directory of the document. */
  folder: string;
  text: string;
}

export function Document({ folder, text }: DocumentProps) {
  const place = useRepo();
  const { reference } = place;
  const link = (target: string, inner: ComponentChildren) => {
    const path = pathOf(folder, target);
    if (path === undefined) return inner;
    const kind = target.endsWith("/") ? "tree" : "file";
    return <Link to={place.page(`${kind}/${encodePath(path)}`, { ref: reference })}>{inner}</Link>;
  };
  const image = (source: string, words: string) => {
    const path = pathOf(folder, source);
    if (path !== undefined) {
      return <Picture path={filePath(place, path)} type={pictureType(path)} text={words} />;
    }
    // Pictures of other hosts are shown as links: loading them would tell the host who reads the document.
    if (!/^https?:\/\//i.test(source)) return <span class="quiet">{words}</span>;
    return (
      <a href={source} rel="noreferrer noopener nofollow" target="_blank">
        {words || "picture"}
      </a>
    );
  };
  return <Markdown text={text} link={link} image={image} />;
}

/** Returns the repository path of a relative link target. Returns undefined for other targets. */
function pathOf(folder: string, target: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target) || target.startsWith("//") || target.startsWith("#")) {
    return undefined;
  }
  const base = `https://repository.invalid/${encodePath(folder)}${folder && "/"}`;
  const url = URL.parse(target, base);
  if (url?.origin !== "https://repository.invalid") return undefined;
  try {
    return decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, "");
  } catch {
    // The path contains a percent sign without a valid code after it.
    return undefined;
  }
}

const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  ico: "image/x-icon",
  svg: "image/svg+xml",
};

/** Returns the media type of a picture from its file name. Returns undefined for other files. */
export const pictureType = (path: string) => TYPES[path.split(".").at(-1)?.toLowerCase() ?? ""];

interface PictureProps {
  path: string;
  type: string | undefined;
  text: string;
}

/** Shows a picture of the repository. Browsers run no scripts in an <img>, even if it is an SVG. */
export function Picture({ path, type, text }: PictureProps) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (type === undefined) return;
    const leaving = new AbortController();
    let made: string | undefined;
    send({ path }, leaving.signal)
      .then(async (response) => {
        made = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type }));
        setUrl(made);
      })
      .catch(() => {
        // If the picture cannot be loaded, its text stays in its place.
      });
    return () => {
      leaving.abort();
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [path, type]);
  return url === undefined ? <span class="quiet">{text}</span> : <img src={url} alt={text} />;
}

export function Readme({ entries }: { entries: readonly WireTreeEntry[] }) {
  const place = useRepo();
  const found = readmeOf(entries);
  const url = found && place.rest(`/blob/${found.hash}`);
  const text = useLoaded(url, async (signal) => (await send({ path: url ?? "" }, signal)).text());
  if (!found) return null;
  return (
    <Card title={found.name}>
      <Read reading={text}>
        {(value) =>
          isMarkdown(found.name) ? (
            <Document folder={place.path} text={value} />
          ) : (
            <SourceText text={value} label={found.name} />
          )
        }
      </Read>
    </Card>
  );
}

export const isMarkdown = (name: string) => /\.(md|markdown|mdown)$/i.test(name);

/** Chooses the README to show. Prefers Markdown to other formats, as Git hosting sites do. */
function readmeOf(entries: readonly WireTreeEntry[]): WireTreeEntry | undefined {
  const found = entries.filter(
    ({ name, type }) =>
      (type === "blob" || type === "exec") && /^readme(\.(md|markdown|txt|rst))?$/i.test(name),
  );
  return found.find(({ name }) => isMarkdown(name)) ?? found[0];
}

/** Returns the path in the REST API of a file's bytes: at a ref, or else at the place's ref. */
export const filePath = ({ rest, reference = "HEAD" }: RepoPlace, path: string, ref = reference) =>
  rest(`/file${queryOf({ ref, path })}`);
