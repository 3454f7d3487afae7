/**
 * Pages of repositories. The name of a namespace never begins with a dash, so paths that begin with a dash are other
 * pages of this area.
 */
import type { Pages } from "../lib/router.ts";
import { BranchesPage, ComparePage } from "./branches-page.tsx";
import { EditPage } from "./edit-page.tsx";
import { FilePage } from "./file-page.tsx";
import { FilesPage } from "./files-page.tsx";
import { CommitPage, HistoryPage } from "./history-page.tsx";
import { ImportPage, NewRepoPage } from "./new-repo-page.tsx";
import { RepoTokensPage } from "./repo-tokens-page.tsx";
import { RepositoriesPage } from "./repositories-page.tsx";
import { SettingsPage } from "./settings-page.tsx";

export const pages: Pages = {
  "": RepositoriesPage,
  "-/new": NewRepoPage,
  "-/import": ImportPage,
  ":namespace": RepositoriesPage,
  ":namespace/:name": FilesPage,
  ":namespace/:name/tree/:path*": FilesPage,
  ":namespace/:name/file/:path*": FilePage,
  ":namespace/:name/edit/:path*": EditPage,
  ":namespace/:name/history": HistoryPage,
  ":namespace/:name/commit/:hash": CommitPage,
  ":namespace/:name/compare": ComparePage,
  ":namespace/:name/branches": BranchesPage,
  ":namespace/:name/tokens": RepoTokensPage,
  ":namespace/:name/settings": SettingsPage,
};
