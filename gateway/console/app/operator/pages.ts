/** Pages for administrators of the installation. */
import type { Pages } from "../lib/router.ts";
import { AdministratorsPage } from "./administrators-page.tsx";
import { DeadLetterPage, DeadLettersPage } from "./dead-letters-page.tsx";
import { HostsPage, QueuesPage, StoragePage } from "./hosts-page.tsx";

export const pages: Pages = {
  "": HostsPage,
  queues: QueuesPage,
  storage: StoragePage,
  "dead-letters": DeadLettersPage,
  "dead-letters/:sequence": DeadLetterPage,
  administrators: AdministratorsPage,
};
