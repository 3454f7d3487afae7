/** The page of one file: highlighted source, a document, a picture, or a download link. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { counted, formatBytes } from "../lib/format.ts";
import { send } from "../lib/rest.ts";
import { useLoaded } from "../lib/use-rest.ts";
import type { WireRepoDetails } from "../lib/wire.ts";
import { Button, CopyButton, DownloadButton } from "../parts/button.tsx";
import { ButtonLink } from "../parts/link.tsx";
import { Empty } from "../parts/note.tsx";
import { Read } from "../parts/page.tsx";
import { SourceText } from "../parts/source.tsx";
import { Document, filePath, isMarkdown, Picture, pictureType } from "./document.tsx";
import { RepoPage } from "./repo-page.tsx";
import { encodePath, PathBar, RefPicker, useRepo } from "./repo-place.tsx";

/** Larger files are only offered for download, because a page with more text scrolls slowly. */
const SHOWN_BYTES_MAX = 1_000_000;

export function FilePage() {
  const place = useRepo();
  const path = filePath(place, place.path);
  return (
    <RepoPage current="" title={place.path.split("/").at(-1)} request={{ path }}>
      {(repo) => <File repo={repo} />}
    </RepoPage>
  );
}

function File({ repo }: { repo: WireRepoDetails }) {
  const { go } = useAccount();
  const place = useRepo();
  const current = place.reference ?? `refs/heads/${repo.default_branch}`;
  const path = filePath(place, place.path);
  const file = useLoaded(`${path} ${repo.last_push_at}`, (signal) => readFile(path, signal));
  const show = (ref: string) => go(place.page(`file/${encodePath(place.path)}`, { ref }));
  return (
    <div class="stack">
      <div class="repo-bar">
        <RefPicker value={current} onChange={show} />
        <PathBar />
      </div>
      <Read reading={file}>{(found) => <Content current={current} file={found} />}</Read>
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
  /** The chosen ref, or the default branch. */
  current: string;
  file: ReadFile;
}

function Content({ current, file }: ContentProps) {
  const { may } = useAccount();
  const place = useRepo();
  const { bytes, text } = file;
  const name = place.path.split("/").at(-1) ?? "";
  const [isSource, setSource] = useState(!isMarkdown(name));
  const lines = text?.replace(/\n$/, "").split("\n").length;
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
          <DownloadButton label="Download" path={filePath(place, place.path)} name={name} />
          {canEdit && (
            <ButtonLink to={place.page(`edit/${encodePath(place.path)}`, { ref: current })}>
              Edit
            </ButtonLink>
          )}
        </div>
      </div>
      <Shown {...file} name={name} isSource={isSource} />
    </section>
  );
}

interface ShownProps extends ReadFile {
  name: string;
  isSource: boolean;
}

function Shown({ name, text, isSource, bytes }: ShownProps) {
  const place = useRepo();
  const { path } = place;
  const type = pictureType(path);
  if (type !== undefined && bytes <= SHOWN_BYTES_MAX * 20) {
    return (
      <div class="picture">
        <Picture path={filePath(place, path)} type={type} text={name} />
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
        <Document folder={folder} text={text} />
      </div>
    );
  }
  return <SourceText text={text.replace(/\n$/, "")} language={name} label={name} isNumbered />;
}
