import { expect } from "chai";
import { openPageReader, type PageReader } from "../../../../scripts/testing/page-reader.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";

describe("the world of a page", function () {
  this.timeout(60_000);
  let site: WebSite;
  let reader: PageReader;
  before(async () => {
    site = await WebSite.start();
    reader = openPageReader();
  });
  after(async () => {
    await reader.close();
    await site[Symbol.asyncDispose]();
  });

  const text = async (request: object, selector = "p") => {
    const elements = [{ selector }];
    const { result } = await reader.run("scrape", { ...request, elements });
    return result[0].results[0]?.text;
  };
  const says = (script: string) =>
    site.page(
      "/world",
      `<p>none</p><script>
      const show = (text) => { document.querySelector("p").textContent = text; };
      ${script}</script>`,
    );

  it("timezone and locale are those of scripts and of the request", async () => {
    const url =
      says(`show([new Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.language,
      new Intl.NumberFormat().format(1234.5), new Date(0).getHours()].join(" "))`);
    const world = { timezone: "Asia/Kolkata", locale: "de-CH" };
    expect(await text({ url, ...world })).to.match(
      /^Asia\/(?:Calcutta|Kolkata) de-CH 1['’]234\.5 5$/,
    );
    expect(site.headersOf("/world")["accept-language"]).to.match(/^de-CH/);
    expect(site.headersOf("/world")["user-agent"]).not.to.contain("Headless");
    await text({ url, ...world, userAgent: "Ours/1" });
    expect(site.headersOf("/world")["user-agent"]).to.equal("Ours/1");
  });

  it("colorScheme, reducedMotion and emulateMediaType hold together", async () => {
    const queries = ["print", "(prefers-color-scheme: dark)", "(prefers-reduced-motion: reduce)"];
    const url = says(
      `show(${JSON.stringify(queries)}.filter((query) => matchMedia(query).matches).join())`,
    );
    const preset = await text({ url });
    expect(preset).not.to.contain("dark");
    const world = { colorScheme: "dark", reducedMotion: "reduce", emulateMediaType: "print" };
    expect(await text({ url, ...world })).to.equal(queries.join());
    expect(await text({ url, colorScheme: "light" })).to.equal("");
  });

  it("geolocation gives the page its position, and without it the page has none", async () => {
    const url = says(`navigator.geolocation.getCurrentPosition(
      ({ coords }) => show(coords.latitude + " " + coords.longitude + " " + coords.accuracy),
      () => show("denied"))`);
    const geolocation = { latitude: 47.37, longitude: 8.54, accuracy: 10 };
    expect(await text({ url, geolocation })).to.equal("47.37 8.54 10");
    expect(await text({ url })).to.equal("denied");
  });

  it("device gives viewport and user agent, and the request's own go first", async () => {
    const url = says(`show([innerWidth, devicePixelRatio, navigator.userAgent].join(" "))`);
    const device = "iPhone 8";
    const head = '<meta name="viewport" content="width=device-width">';
    site.page(
      "/phone",
      `${head}<p></p><script>document.querySelector("p").textContent =
      [innerWidth, devicePixelRatio, navigator.userAgent].join(" ")</script>`,
    );
    expect(await text({ url: `${site.url}/phone`, device })).to.match(/^375 2 .*iPhone/);
    const own = { viewport: { width: 500, height: 400 }, userAgent: "Ours/1" };
    expect(await text({ url, device, ...own })).to.equal("500 1 Ours/1");
    const { result } = await reader.run("snapshot", {
      ...{ url: `${site.url}/phone`, device, formats: ["screenshot"] },
    });
    const png = Buffer.from(result.screenshot, "base64");
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).to.deep.equal([750, 1_334]);
    const { code, details } = await reader.refused("content", { html: "x", device: "Abacus" });
    expect([code, details.faults?.[0]?.pointer]).to.deep.equal(["invalid_request", "/device"]);
  });

  describe("actions", () => {
    const html = `<p>none</p><input id="name"><button id="go">Go</button>
      <select id="kind"><option value="a">A<option value="b">B</select><div style="height:5000px"></div>
      <b id="far" style="position:absolute;top:4000px">far</b><script>
      const shown = [];
      const show = (text) => { shown.push(text); document.querySelector("p").textContent = shown.join(" "); };
      go.onclick = () => setTimeout(() => { show("clicked"); document.body.append(Object.assign(document.createElement("i"), { id: "late", textContent: "late" })); }, 50);
      document.getElementById("name").onkeydown = ({ key }) => { if (key === "Enter") show(document.getElementById("name").value); };
      kind.onchange = () => show(kind.value);
      onscroll = () => { if (scrollY > 1000 && !shown.includes("scrolled")) show("scrolled"); };
    </script>`;

    it("are done in order before the result is taken, and their consequences waited for", async () => {
      const actions = [
        { type: "type", selector: "#name", text: "Ada" },
        { type: "press", key: "Enter" },
        { type: "select", selector: "#kind", value: "b" },
        { type: "click", selector: "#go" },
        { type: "waitForSelector", selector: "#late" },
        { type: "waitForTimeout", timeout: 10 },
        { type: "scroll", selector: "#far" },
        { type: "scroll", y: 0 },
      ];
      expect(await text({ html, actions })).to.equal("Ada b clicked scrolled");
      // The request contains no wait, because the page is waited for again after the actions.
      const click = [{ type: "click", selector: "#go" }];
      expect(await text({ html, actions: click }, "#late")).to.equal("late");
    });

    it("that fail are named by index and type; bestAttempt goes on", async () => {
      const failing = [
        { type: "click", selector: "#go" },
        { type: "click", selector: "#none", timeout: 200 },
      ];
      const { code, message } = await reader.refused("content", { html, actions: failing });
      expect([code, message]).to.deep.equal([
        "wait_timed_out",
        "Cannot do action 1 (click): it took longer than 200 ms",
      ]);
      const option = [{ type: "select", selector: "#kind", value: "c" }];
      const missing = await reader.refused("content", { html, actions: option });
      expect(missing.message).to.equal('Cannot do action 0 (select): no option "c" is there');
      const request = { html, actions: [...failing, { type: "click", selector: "#go" }] };
      expect(await text({ ...request, bestAttempt: true })).to.equal("clicked clicked");
    });

    it("that no browser can do are faults of the request", async () => {
      const pointerOf = async (action: object) => {
        const { code, details } = await reader.refused("content", { html, actions: [action] });
        return [code, details.faults?.[0]?.pointer];
      };
      expect(await pointerOf({ type: "press", key: "Any" })).to.deep.equal([
        "invalid_request",
        "/actions/0/key",
      ]);
      expect(await pointerOf({ type: "click", selector: "##" })).to.deep.equal([
        "invalid_request",
        "/actions/0/selector",
      ]);
    });
  });
});
