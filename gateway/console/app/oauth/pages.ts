/** Pages of OAuth clients. */
import type { Pages } from "../lib/router.ts";
import { ClientPage, ClientsPage } from "./clients-page.tsx";
import { DomainPage } from "./domain-page.tsx";
import { NewClientPage, SettingsPage } from "./new-client-page.tsx";
import { PeoplePage } from "./people-page.tsx";
import { TryItBackPage, TryItPage } from "./try-it-page.tsx";

export const pages: Pages = {
  "": ClientsPage,
  new: NewClientPage,
  // The authorization server redirects to this page, see try-it-page.tsx.
  "try-it": TryItBackPage,
  ":id": ClientPage,
  ":id/settings": SettingsPage,
  ":id/domain": DomainPage,
  ":id/try-it": TryItPage,
  ":id/people": PeoplePage,
};
