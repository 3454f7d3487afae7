import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { ERRORS } from "../../schemas/errors.ts";
import { REPOSITORY } from "../tools.ts";
import { referencePages } from "./reference.ts";

describe("docs/reference", () => {
  for (const [path, text] of referencePages()) {
    it(`${path} is what npm run docs makes`, () => {
      expect(readFileSync(join(REPOSITORY, path), "utf8")).to.equal(text);
    });
  }

  it("names every error and routes of every area", () => {
    const [errors = "", api = ""] = [...referencePages().values()];
    for (const name of Object.keys(ERRORS)) expect(errors).to.include(`\`${name}\``);
    for (const path of ["/tokens", "/pdf", "/crawl/", "/repos", "/oauth_clients", "/apps"]) {
      expect(api).to.include(path);
    }
  });
});
