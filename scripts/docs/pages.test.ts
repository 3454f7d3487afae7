import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { ERRORS } from "../../schemas/errors.ts";
import { METRICS } from "../../schemas/metrics.ts";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../../schemas/oauth/limits.ts";
import { CLIENT_URIS_MAX } from "../../schemas/oauth/oauth-client-settings.ts";
import { SETTING_NAMES } from "../settings.ts";
import { REPOSITORY } from "../tools.ts";
import { madeDocuments } from "./pages.ts";

describe("documents from the code", () => {
  const documents = madeDocuments();
  const page = (name: string) => documents.get(`docs/reference/${name}.md`);

  for (const [path, text] of documents) {
    it(`${path} equals the output of npm run docs`, () => {
      expect(readFileSync(join(REPOSITORY, path), "utf8")).to.equal(text);
    });
  }

  it("names every error, routes of every area, and every setting and metric", () => {
    for (const name of Object.keys(ERRORS)) expect(page("errors")).to.include(`\`${name}\``);
    for (const path of ["/tokens", "/pdf", "/crawl/", "/repos", "/oauth_clients", "/apps"]) {
      expect(page("api")).to.include(path);
    }
    for (const name of SETTING_NAMES) expect(page("configuration")).to.include(`\`${name}\``);
    for (const name of Object.keys(METRICS)) expect(page("metrics")).to.include(`_${name}\``);
  });

  it("shows the default and valid values of a setting, and the numbers of limits", () => {
    expect(page("configuration")).to.include(
      "| `TRUNKLINE_PORT` | `8787` | a whole number from 1 to 65535 |",
    );
    const perAccount = OAUTH_CLIENTS_PER_ACCOUNT_MAX;
    expect(page("limits")).to.include(`| ${perAccount}; ${CLIENT_URIS_MAX}; 2 | 409; 400; 409 |`);
    expect(page("limits")).to.include("| 1,200 in 5 minutes ([settable](configuration.md)) |");
  });
});
