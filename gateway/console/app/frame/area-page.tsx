/** Loads the area of an address, and shows its page. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PageParameters, Pages } from "../lib/pages.ts";
import { RestError } from "../lib/rest.ts";
import { matchPath } from "../lib/router.tsx";
import { ErrorNote, Page } from "../parts/page.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { AREAS, type Area } from "./areas.ts";

const loaded = new Map<Area, Pages>();

export const areaOf = (path: string) => AREAS.find((area) => area.path === path.split("/")[0]);

export function AreaPage({ path }: { path: string }) {
  const area = areaOf(path);
  const [, setTurn] = useState(0);
  const [failure, setFailure] = useState<RestError>();
  const again = () => setTurn((turn) => turn + 1);
  const load = () => {
    if (!area || loaded.has(area)) return;
    setFailure(undefined);
    area.load().then(
      ({ pages }) => {
        loaded.set(area, pages);
        again();
      },
      () => setFailure(new RestError(0, [{ message: "This part of the console did not load." }])),
    );
  };
  useEffect(load, [area]);
  if (!area) return <NoSuchPage />;
  const pages = loaded.get(area);
  if (!pages) return failure ? <ErrorNote error={failure} retry={load} /> : <Skeleton />;
  const found = pageOf(pages, path.slice(area.path.length).replace(/^\//, ""));
  if (!found) return <NoSuchPage />;
  const { Shown, parameters } = found;
  // Another address is another page, with fields and focus of its own.
  return <Shown key={path} parameters={parameters} />;
}

function pageOf(pages: Pages, path: string) {
  for (const [pattern, Shown] of Object.entries<ComponentType<PageParameters>>(pages)) {
    const parameters = matchPath(pattern, path);
    if (parameters) return { Shown, parameters };
  }
  return undefined;
}

function NoSuchPage() {
  return (
    <Page
      title="There is no such page"
      lead="The address may be mistyped, or what was there is gone."
    />
  );
}
