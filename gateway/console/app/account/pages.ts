/** Pages of the account: its API tokens, its members, and the sessions of the person. */
import type { Pages } from "../lib/pages.ts";
import { MembersPage } from "./members-page.tsx";
import { NewTokenPage } from "./new-token-page.tsx";
import { SessionsPage } from "./sessions-page.tsx";
import { TokenPage } from "./token-page.tsx";
import { TokensPage } from "./tokens-page.tsx";

export const pages: Pages = {
  "": TokensPage,
  "tokens/new": NewTokenPage,
  "tokens/:id": TokenPage,
  members: MembersPage,
  sessions: SessionsPage,
};
