/** Pages for administrators of the installation. */
import type { Pages } from "../lib/pages.ts";
import { AdministratorsPage } from "./administrators-page.tsx";
import { DeadLetterPage } from "./dead-letter-page.tsx";
import { DeadLettersPage } from "./dead-letters-page.tsx";
import { HostsPage } from "./hosts-page.tsx";
import { QueuesPage } from "./queues-page.tsx";
import { StoragePage } from "./storage-page.tsx";

export const pages: Pages = {
  "": HostsPage,
  queues: QueuesPage,
  storage: StoragePage,
  "dead-letters": DeadLettersPage,
  "dead-letters/:sequence": DeadLetterPage,
  administrators: AdministratorsPage,
};
