/** Creates the service of repositories and the processes that read objects for it. */
import { ObjectReaders } from "./read/read-objects.ts";
import { Repositories, type RepositoriesParts } from "./repositories.ts";

export interface OpenedRepositories {
  repositories: Repositories;
  /** Ends the processes that read. */
  close(): Promise<void>;
}

export function openRepositories(
  parts: Omit<RepositoriesParts, "readers">,
  { readersMax }: { readersMax?: number } = {},
): OpenedRepositories {
  const { cache, now } = parts;
  const readers = new ObjectReaders(cache, {
    now,
    ...(readersMax !== undefined && { readersMax }),
  });
  return {
    repositories: new Repositories({ ...parts, readers }),
    close: () => readers.close(),
  };
}
