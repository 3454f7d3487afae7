import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer-core";
import { SOURCE_GUESSES_FREE } from "../../../actors/account/login-guard/login-guard.ts";
import { loginGuard } from "../../../schemas/account/login-guard.ts";
import { user } from "../../../schemas/account/user.ts";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import { CLIENTS_PER_PAGE } from "../../../schemas/oauth/limits.ts";
import { startPersonBrowser } from "../../../scripts/testing/person-browser.ts";
import { until } from "../../../scripts/testing/until.ts";
import { authorizationPath, makePublic } from "../testing/client-calls.ts";
import {
  type OAuthWorld,
  oauthWorld,
  REDIRECT_URI,
  type TestClient,
  type Wire,
} from "../testing/oauth-world.ts";

/** The folder in which the test saves screenshots of the pages. If it is not set, the test saves none. */
const PICTURES = process.env.PAGE_PICTURES;
const LOOKS = [
  { name: "light", scheme: "light", width: 1_000, height: 800 },
  { name: "dark", scheme: "dark", width: 1_000, height: 800 },
  { name: "narrow", scheme: "light", width: 320, height: 640 },
] as const;

/** Runs in the browser. Returns the share of colour values that differ visibly between two pictures. */
const DIFFERING = `async (pictures) => {
  const [one, other] = await Promise.all(
    pictures.map(async (picture) => {
      const image = new Image();
      image.src = "data:image/png;base64," + picture;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
      canvas.drawImage(image, 0, 0);
      return canvas.getImageData(0, 0, image.width, image.height).data;
    }),
  );
  return one.filter((value, at) => Math.abs(value - other[at]) > 64).length / one.length;
}`;

describe("pages in Chromium", function () {
  this.timeout(900_000);
  let world: OAuthWorld;
  let browser: Browser;
  let page: Page;
  let axe: string;
  before(async () => {
    world = await oauthWorld();
    axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    browser = await startPersonBrowser();
    page = await browser.newPage();
    await page.setJavaScriptEnabled(false);
  });
  after(async () => {
    await browser?.close();
    await world?.stop();
  });

  it("a person signs up, consents and revokes: every page passes the accessibility audit", async () => {
    const client = await world.makeClient({
      client_name: "Build Bot",
      client_uri: "https://bot.example.com",
      policy_uri: "https://bot.example.com/privacy",
      tos_uri: "https://bot.example.com/terms",
      scopes: ["openid", "account.read", "artifacts.read", "artifacts.write", "apps.write"],
      optional_scopes: ["artifacts.write", "apps.write"],
    });
    const [url = ""] = world.urls;
    const authorize = new URL("/oauth2/auth", url);
    authorize.search = new URLSearchParams({
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      state: "a-state",
      login_hint: world.owner.email,
    }).toString();

    await page.goto(`${url}/signup`);
    await look("signup");
    await page.goto(`${url}/oauth2/auth?client_id=none`);
    await look("error");
    await page.goto(authorize.href);
    await look("login");
    await fill("Password", "wrong wrong");
    await press("Sign in");
    expect(await text()).to.contain("is not right");
    await look("login-refused");
    await fill("Password", world.owner.password);
    await press("Sign in");
    await look("consent");
    expect(await text()).to.contain("Artifacts Write");

    // Uses the keyboard only: clears the second optional scope and presses Allow.
    await page.focus("aria/Apps Write[role='checkbox']");
    await page.keyboard.press("Space");
    await page.focus("aria/Allow[role='button']");
    const back = page.waitForRequest((request) => request.url().startsWith(REDIRECT_URI));
    await page.keyboard.press("Enter");
    expect((await back).url())
      .to.contain("state=a-state")
      .and.to.contain("code=");

    await page.goto(`${url}/profile`);
    await look("clients");
    expect(await text())
      .to.contain("Build Bot")
      .and.to.contain("Artifacts Write")
      .and.not.to.contain("Apps Write");
    await press("Revoke");
    expect(await text()).to.contain("Revoked.");
    await look("clients-none");
    await page.goto(`${url}/profile/password`);
    await look("password");
    await page.goto(`${url}/oauth2/logout`);
    await look("logout");
    await press("Sign out");
    await look("logged-out");
    await page.goto(`${url}/profile`);
    expect(page.url()).to.contain("/login");
  });

  it("a person who is no member of a private client's account learns why, and returns with access_denied", async () => {
    const client = await world.makeClient({ client_name: "Inside <b>Bot</b>" });
    const [url = ""] = world.urls;
    await page.goto(`${url}/signup`);
    await fill("Email", "outside@example.com");
    await fill("Password", "correct horse");
    await press("Create account");
    await fill("Email", "outside@example.com");
    await fill("Password", "correct horse");
    await press("Sign in");
    const query = new URLSearchParams({
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
    });
    await page.goto(`${url}/oauth2/auth?${query}`);
    expect(await text()).to.contain("Inside <b>Bot</b> is private");
    await look("private");
    const back = page.waitForRequest((request) => request.url().startsWith(REDIRECT_URI));
    await press("Back to Inside <b>Bot</b>");
    expect((await back).url()).to.contain("error=access_denied");
  });

  it("a logo with a missing or broken copy is replaced by the client's initial", async () => {
    const [url = ""] = world.urls;
    const tiles: string[] = [];
    const elsewhere: string[] = [];
    const context = await browser.createBrowserContext();
    const tab = await context.newPage();
    await tab.setJavaScriptEnabled(false);
    tab.on("request", (request: HTTPRequest) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== "data:" && origin !== url) elsewhere.push(request.url());
    });
    await tab.goto(`${url}/login`);
    await tab.type("input[type=email]", world.owner.email);
    await tab.type("input[type=password]", world.owner.password);
    await Promise.all([tab.waitForNavigation(), tab.click("main button")]);
    const logo_uri = "https://logos.example.com/logo.png";
    for (const logo of [undefined, "absent", "broken"]) {
      const json = { client_name: "Letter Bot", ...(logo && { logo_uri }) };
      const client = await world.makeClient(json);
      if (logo === "broken") await reportLogo(client, logo_uri);
      await tab.goto(`${url}${authorizationPath(client)}`);
      const tile = await tab.$(".client > :first-child");
      tiles.push(await (tile?.screenshot({ encoding: "base64" }) ?? ""));
    }
    expect(elsewhere).to.deep.equal([]);
    const [none, ...others] = tiles;
    const shares: unknown[] = [];
    for (const other of others) {
      shares.push(await tab.evaluate(`(${DIFFERING})(${JSON.stringify([none, other])})`));
    }
    await context.close();
    // Two runs may draw edges in slightly different shades. A missing letter changes far more than 2 % of the pixels.
    for (const share of shares) expect(share).to.be.lessThan(0.02);
  });

  /** Stores a copy of the logo whose first bytes are those of a PNG, but which is no valid picture. */
  async function reportLogo({ client_id: id }: TestClient, uri: string): Promise<void> {
    const logo = { type: "image/png" as const, hash: "1".repeat(64), base64: "iVBORw0KGgo=" };
    const { actors } = world.bus;
    await until("the copy is there", async () => {
      await actors.send(clientLogo, id, "fetched", { uri, attempt: 1, logo });
      return (await actors.call(clientLogo, id, "find", { uri })).hash !== undefined;
    });
  }

  it("an administrator invites a person, gives them roles and removes them: every page passes the accessibility audit", async () => {
    const [url = ""] = world.urls;
    await browser.deleteCookie(...(await browser.cookies()));
    await page.goto(`${url}/profile/members`);
    expect(page.url()).to.contain("/login");
    await fill("Email", world.owner.email);
    await fill("Password", world.owner.password);
    await press("Sign in");
    await page.goto(`${url}/profile`);
    await follow("Members");
    await look("members");
    const [role] = await page.$$("aria/Member[role='checkbox']");
    await role?.click();
    await fill("Email", "new@example.com");
    await press("Invite");
    expect(await text()).to.contain("Choose at least one role");
    await look("members-refused");
    await page.click("aria/OAuth Client Write[role='checkbox']");
    await press("Invite");
    const invitation = await page.$eval("code", (code: Wire) => code.innerText as string);
    expect(invitation).to.match(new RegExp(`^${url}/signup[?]invitation=tlin_`));
    await look("members-invited");
    await follow("Back to the members");
    await follow("new@example.com");
    expect(await text()).to.contain("Invited to");
    await look("member-invited");

    const context = await browser.createBrowserContext();
    const elsewhere = await context.newPage();
    await elsewhere.setJavaScriptEnabled(false);
    await elsewhere.goto(invitation);
    // The first form is the sign-up form, the second the sign-in form.
    for (let form = 0; form < 2; form++) {
      await elsewhere.type("input[type=password]", "correct horse");
      await Promise.all([elsewhere.waitForNavigation(), elsewhere.click("main button")]);
    }
    // A person who administers only their own account does not see this page.
    const { searchParams } = new URL(page.url());
    await elsewhere.goto(`${url}/profile/members?account=${searchParams.get("account")}`);
    expect(await elsewhere.$eval("h1", (h1: Wire) => h1.innerText)).to.equal("For administrators");
    await context.close();

    await page.goto(`${url}/profile/members`);
    await follow("new@example.com");
    expect(await text()).to.contain("A member of");
    await page.click("aria/Administrator[role='checkbox']");
    await press("Save roles");
    expect(await text())
      .to.contain("Saved.")
      .and.to.contain("Administrator, OAuth Client Write");
    await look("members-two");
    await follow("new@example.com");
    await look("member");
    await press("Remove");
    expect(await text())
      .to.contain("Removed.")
      .and.not.to.contain("new@example.com");
    await follow(world.owner.email);
    await press("Remove");
    expect(await text()).to.contain("They are the last Super Administrator.");
    await look("member-last");
  });

  it("the pages of a long client list and of too many attempts pass the accessibility audit", async () => {
    const [url = ""] = world.urls;
    const { id: userId } = await world.bus.actors.call(user, world.owner.email, "get", {});
    const consent = { scopes: ["apps.read" as const], rejectedScopes: [], accountIds: [] };
    for (let number = 0; number <= CLIENTS_PER_PAGE; number++) {
      const clientId = number.toString(16).padStart(32, "0");
      await world.bus.actors.call(grantList, userId, "consent", { ...consent, clientId });
    }
    await page.goto(`${url}/profile/clients`);
    await look("clients-many");
    await follow("Clients you allowed before these");
    expect(await text()).to.contain("A client that was deleted");
    await look("clients-last");
    await press("Sign out");
    await browser.deleteCookie(...(await browser.cookies()));
    const from = { from: "network 127.0.0.1", isKnown: false };
    for (let tries = 0; tries < SOURCE_GUESSES_FREE; tries++) {
      await world.bus.actors.call(loginGuard, world.owner.email, "take", from);
    }
    await page.goto(`${url}/login`);
    await fill("Email", world.owner.email);
    await fill("Password", "wrong");
    await press("Sign in");
    expect(await text()).to.match(/Too many tries. Wait \d+ seconds and try again/);
    await look("login-too-often");
  });

  it("rarely shown pages pass the accessibility audit", async () => {
    const [url = ""] = world.urls;
    await browser.deleteCookie(...(await browser.cookies()));
    const client = await makePublic(world, { post_logout_redirect_uris: [REDIRECT_URI] });
    const path = (changes: Record<string, string>) => url + authorizationPath(client, changes);
    const { body } = await world.api(`/accounts/${world.accountId}/members`, {
      method: "POST",
      json: { email: "rare@example.com", roles: ["OAuth Client Write"] },
    });
    const { invitation_url: invitation } = body.result;
    await page.goto(path({ scope: "apps.write" }));
    expect(await text()).to.contain("Go back to 127.0.0.1:1");
    await look("error-with-a-way-back");
    const left = { client_id: client.client_id, post_logout_redirect_uri: REDIRECT_URI };
    await page.goto(`${url}/oauth2/logout?${new URLSearchParams(left)}`);
    expect(await text()).to.contain("Go on to 127.0.0.1:1");
    await look("logged-out-with-a-way-on");

    await page.goto(invitation);
    expect(await text()).to.contain("You are invited");
    await look("signup-invited");
    await fill("Password", "short");
    await press("Create account");
    await look("signup-refused");
    await fill("Password", "correct horse");
    await press("Create account");
    await look("login-after-signup");
    await fill("Password", "correct horse");
    await press("Sign in");
    await page.goto(invitation);
    expect(await text()).to.contain("invitation is over");
    await look("invitation-over");
    await page.goto(`${url}/profile/members?account=${world.accountId}`);
    expect(await text()).to.contain("For administrators");
    await look("members-for-administrators");
    await page.goto(`${url}/profile/password`);
    await fill("Current password", "wrong horse");
    await fill("New password", "better horse");
    await press("Change password");
    await look("password-refused");

    await page.goto(path({ scope: "artifacts.read artifacts.write" }));
    expect(await text()).to.contain("allows none of the requested permissions");
    await look("consent-without-an-account");
    for (const box of await page.$$("input[name=account]:not([disabled])")) {
      if (await box.evaluate((one: Wire) => one.checked)) await box.click();
    }
    await press("Allow");
    expect(await text()).to.contain("Choose at least one account.");
    await look("consent-refused");
    await page.goto(path({ scope: "openid email" }));
    expect(await text()).to.contain("which has confirmed it");
    await look("consent-for-identity");
    const back = page.waitForRequest((request) => request.url().startsWith(REDIRECT_URI));
    await page.click("button[value=allow]");
    expect((await back).url()).to.contain("code=");
    const own = `/accounts/${world.accountId}/oauth_clients/${client.client_id}`;
    await world.api(own, { method: "DELETE" });
    await page.goto(`${url}/profile/clients`);
    expect(await text()).to.contain("A client that was deleted");
    await look("clients-deleted");
    await page.goto(`${url}/oauth2/consent?interaction=${"x".repeat(20)}`);
    await look("consent-over");
  });

  const text = () => page.$eval("body", (body: Wire) => body.innerText as string);
  const fill = async (label: string, value: string) => {
    const field = await page.waitForSelector(`aria/${label}[role='textbox']`);
    await field?.click({ count: 3 });
    await field?.type(value);
  };
  const press = async (name: string) => {
    const button = await page.waitForSelector(`aria/${name}[role='button']`);
    await Promise.all([page.waitForNavigation(), button?.click()]);
  };

  const follow = async (name: string) => {
    const link = await page.waitForSelector(`aria/${name}[role='link']`);
    await Promise.all([page.waitForNavigation(), link?.click()]);
  };

  async function look(name: string): Promise<void> {
    for (const { name: as, scheme, width, height } of LOOKS) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      if (PICTURES !== undefined) {
        await mkdir(PICTURES, { recursive: true });
        await page.screenshot({ path: join(PICTURES, `${name}-${as}.png`), fullPage: true });
      }
      const wide = await page.evaluate("document.documentElement.scrollWidth");
      expect(wide, `${name} ${as} is wider than its window`).to.be.at.most(width);
      await page.setJavaScriptEnabled(true);
      if (!(await page.evaluate('"axe" in window'))) await page.evaluate(`${axe}; 0`);
      // Without `resultTypes`, axe also describes each element that follows a rule.
      const audit = `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)`;
      const found = (await page.evaluate(audit)) as Wire[];
      await page.setJavaScriptEnabled(false);
      const faults = found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
      expect(faults, `${name} ${as}`).to.deep.equal([]);
    }
  }
});
