/** A small picture of what an entry of a directory is. */
import type { WireTreeEntry } from "../lib/wire.ts";

const FILE = "M5 2.500h6.500L15.500 6.500V17.500H5zM11.500 2.500v4h4";
const FOLDER = "M2.500 5h5l2 2h8v9h-15z";
const NAMES = {
  tree: "Directory",
  blob: "File",
  exec: "File",
  symlink: "Link",
  gitlink: "Submodule",
};

export function FileIcon({ type }: { type: WireTreeEntry["type"] }) {
  const isFolder = type === "tree" || type === "gitlink";
  return (
    <>
      <svg
        class={`icon ${isFolder ? "folder" : "file"}`}
        viewBox="0 0 20 20"
        aria-hidden="true"
        focusable="false"
      >
        <path d={isFolder ? FOLDER : FILE} />
      </svg>
      <span class="hidden">{NAMES[type]}</span>
    </>
  );
}
