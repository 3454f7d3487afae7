/** Pages of the account: its API tokens, its members, and the browser sessions of the signed-in person. */
import type { Pages } from "../lib/router.ts";
import { MembersPage } from "./members-page.tsx";
import { SessionsPage } from "./sessions-page.tsx";
import { NewTokenPage, TokenPage, TokensPage } from "./tokens-page.tsx";

export const pages: Pages = {
  "": TokensPage,
  "tokens/new": NewTokenPage,
  "tokens/:id": TokenPage,
  members: MembersPage,
  sessions: SessionsPage,
};
