/** The page of one file: highlighted source, a document, a picture, or a download link. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { counted, formatBytes } from "../lib/format.ts";
import { send } from "../lib/rest.ts";
import { type PageParameters, usePlace } from "../lib/router.ts";
import { useLoaded } from "../lib/use-rest.ts";
import { Button, CopyButton, DownloadButton } from "../parts/button.tsx";
import { ButtonLink } from "../parts/link.tsx";
import { Empty } from "../parts/note.tsx";
import { Read } from "../parts/page.tsx";
import { SourceText } from "../parts/source.tsx";
import { Document, fileRequest, isMarkdown, Picture, pictureType } from "./document.tsx";
import type { FilesProps } from "./files-page.tsx";
import { RepoPage } from "./repo-page.tsx";
import { encodePath, PathBar, RefPicker, type RepoPlace, useRepo } from "./repo-place.tsx";

/** Larger files are only offered for download, because a page with more text scrolls slowly. */
const SHOWN_BYTES_MAX = 1_000_000;

export function FilePage({ parameters }: PageParameters) {
  const place = useRepo(parameters);
  const { query } = usePlace();
  const { path = "" } = parameters;
  const reference = query.get("ref") ?? undefined;
  return (
    <RepoPage
      parameters={parameters}
      current=""
      title={path.split("/").at(-1)}
      request={fileRequest(place, reference ?? "HEAD", path)}
    >
      {(repo) => <File {...{ place, repo, reference, path }} />}
    </RepoPage>
  );
}

function File({ place, repo, reference, path }: FilesProps) {
  const { go } = useAccount();
  const current = reference ?? `refs/heads/${repo.default_branch}`;
  const request = fileRequest(place, current, path);
  const file = useLoaded(`${request.path} ${repo.last_push_at}`, (signal) =>
    readFile(request.path, signal),
  );
  const show = (ref: string) => go(place.page(`file/${encodePath(path)}`, { ref }));
  return (
    <div class="stack">
      <div class="repo-bar">
        <RefPicker place={place} value={current} onChange={show} />
        <PathBar place={place} reference={reference} path={path} />
      </div>
      <Read reading={file}>
        {(found) => <Content place={place} current={current} path={path} file={found} />}
      </Read>
    </div>
  );
}

interface ReadFile {
  bytes: number;
  /** Undefined if the file is not text or is too large. */
  text: string | undefined;
}

async function readFile(path: string, signal: AbortSignal): Promise<ReadFile> {
  const response = await send({ path }, signal);
  const bytes = Number(response.headers.get("content-length"));
  if (bytes > SHOWN_BYTES_MAX) {
    await response.body?.cancel();
    return { bytes, text: undefined };
  }
  const buffer = await response.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(buffer);
    return { bytes: buffer.byteLength, text: text.includes("\0") ? undefined : text };
  } catch {
    // The file is not UTF-8, so it is not shown as text.
    return { bytes: buffer.byteLength, text: undefined };
  }
}

interface ContentProps {
  place: RepoPlace;
  current: string;
  path: string;
  file: ReadFile;
}

function Content({ place, current, path, file: { bytes, text } }: ContentProps) {
  const { may } = useAccount();
  const name = path.split("/").at(-1) ?? "";
  const [isSource, setSource] = useState(!isMarkdown(name));
  const lines = text?.replace(/\n$/, "").split("\n").length;
  const request = fileRequest(place, current, path);
  const canEdit = text !== undefined && may("artifacts.write") && current.startsWith("refs/heads/");
  return (
    <section class="card flush" aria-label={name}>
      <div class="latest">
        <span class="quiet">
          {lines !== undefined && `${counted(lines, "line")} · `}
          {formatBytes(bytes)}
        </span>
        <div class="actions">
          {isMarkdown(name) && text !== undefined && (
            <Button onClick={() => setSource(!isSource)}>
              {isSource ? "Show as document" : "Show source"}
            </Button>
          )}
          {text !== undefined && <CopyButton text={text} />}
          <DownloadButton label="Download" path={request.path} name={name} />
          {canEdit && (
            <ButtonLink to={place.page(`edit/${encodePath(path)}`, { ref: current })}>
              Edit
            </ButtonLink>
          )}
        </div>
      </div>
      <Shown {...{ place, current, path, name, text, isSource, bytes }} />
    </section>
  );
}

interface ShownProps extends Omit<ContentProps, "file">, ReadFile {
  name: string;
  isSource: boolean;
}

function Shown({ place, current, path, name, text, isSource, bytes }: ShownProps) {
  const type = pictureType(path);
  if (type !== undefined && bytes <= SHOWN_BYTES_MAX * 20) {
    return (
      <div class="picture">
        <Picture path={fileRequest(place, current, path).path} type={type} text={name} />
      </div>
    );
  }
  if (text === undefined) {
    return (
      <Empty
        title={bytes > SHOWN_BYTES_MAX ? "This file is too large to show" : "This file is no text"}
      >
        Download it to see what it holds.
      </Empty>
    );
  }
  if (text === "") return <Empty title="This file is empty" />;
  if (!isSource) {
    const folder = path.split("/").slice(0, -1).join("/");
    return (
      <div class="padded">
        <Document place={place} reference={current} folder={folder} text={text} />
      </div>
    );
  }
  return <SourceText text={text.replace(/\n$/, "")} language={name} label={name} isNumbered />;
}
