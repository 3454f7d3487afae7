/** The README of a directory, as a document. */

import { queryOf } from "../lib/query.ts";
import { send } from "../lib/rest.ts";
import { useLoaded } from "../lib/use-loaded.ts";
import type { WireTreeEntry } from "../lib/wire.ts";
import { Card, Read } from "../parts/page.tsx";
import { SourceText } from "../parts/source.tsx";
import { Document } from "./document.tsx";
import type { RepoPlace } from "./repo-place.ts";

interface ReadmeProps {
  place: RepoPlace;
  reference: string;
  path: string;
  entries: readonly WireTreeEntry[];
}

export function Readme({ place, reference, path, entries }: ReadmeProps) {
  const found = readmeOf(entries);
  const url = found && place.rest(`/blob/${found.hash}`);
  const text = useLoaded(url, async (signal) => (await send({ path: url ?? "" }, signal)).text());
  if (!found) return null;
  return (
    <Card title={found.name}>
      <Read reading={text}>
        {(value) =>
          isMarkdown(found.name) ? (
            <Document place={place} reference={reference} folder={path} text={value} />
          ) : (
            <SourceText text={value} label={found.name} />
          )
        }
      </Read>
    </Card>
  );
}

export const isMarkdown = (name: string) => /\.(md|markdown|mdown)$/i.test(name);

/** Markdown before other forms, as other hosts choose. */
function readmeOf(entries: readonly WireTreeEntry[]): WireTreeEntry | undefined {
  const found = entries.filter(
    ({ name, type }) =>
      (type === "blob" || type === "exec") && /^readme(\.(md|markdown|txt|rst))?$/i.test(name),
  );
  return found.find(({ name }) => isMarkdown(name)) ?? found[0];
}

/** The bytes of a file by ref and path. */
export const fileRequest = (place: RepoPlace, reference: string, path: string) => ({
  path: place.rest(`/file${queryOf({ ref: reference, path })}`),
});
