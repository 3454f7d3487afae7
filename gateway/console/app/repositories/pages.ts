/** Pages of repositories. A name never begins with a dash, so what does is a page of the area. */
import type { Pages } from "../lib/pages.ts";
import { BranchesPage } from "./branches-page.tsx";
import { CommitPage } from "./commit-page.tsx";
import { ComparePage } from "./compare-page.tsx";
import { EditPage } from "./edit-page.tsx";
import { FilePage } from "./file-page.tsx";
import { FilesPage } from "./files-page.tsx";
import { HistoryPage } from "./history-page.tsx";
import { ImportPage } from "./import-page.tsx";
import { NewRepoPage } from "./new-repo-page.tsx";
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
