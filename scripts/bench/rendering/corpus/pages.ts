/**
 * Sixty pages to measure when a page counts as settled. Each page stops changing within two seconds after its load
 * event, or changes only invisibly.
 */

export interface CorpusPage {
  /** The name of the page, and its path below `/pages/`. */
  name: string;
  /** Elements of the document's head. */
  head?: string;
  body: string;
}

const script = (code: string, type = "") => `<script${type && ` type="${type}"`}>${code}</script>`;
const moduleScript = (code: string) => script(code, "module");
/** Loads a library's file from the site. */
const library = (path: string) => `<script src="/libraries/${path}"></script>`;
const sheet = (path: string) => `<link rel="stylesheet" href="/libraries/${path}">`;
/** Shows a text as a paragraph. */
const SHOW = script(`const show = (text) => document.body.append(
  Object.assign(document.createElement("p"), { textContent: text }))`);
const WORDS = "The quick brown fox jumps over the lazy dog. ";

const STATIC: CorpusPage[] = [
  { name: "static-text", body: `<h1>Static</h1><p>${WORDS.repeat(20)}` },
  { name: "static-long", body: `<p>${WORDS.repeat(10)}`.repeat(100) },
  {
    name: "static-table",
    body: `<table border>${`<tr>${"<td>cell".repeat(8)}`.repeat(60)}</table>`,
  },
  {
    name: "static-grid",
    head: "<style>main { display: grid; grid-template-columns: repeat(5, 1fr); gap: 1em }</style>",
    body: `<main>${"<section><h2>Card</h2><p>Some text of the card</section>".repeat(25)}</main>`,
  },
  {
    name: "static-svg",
    body: `<svg width="400" height="200"><circle cx="90" cy="90" r="70" fill="teal"/><text x="180" y="90">SVG</text></svg>`,
  },
  {
    name: "static-mathml",
    body: "<math display=block><mfrac><mi>a</mi><msqrt><mi>b</mi></msqrt></mfrac></math><p>MathML",
  },
  { name: "static-slow-picture", body: `<p>Picture<img src="/picture.svg?ms=300" width=200>` },
  {
    name: "static-slow-sheet",
    head: `<link rel="stylesheet" href="/sheet.css?ms=300">`,
    body: `<p class="styled">Styled by a slow sheet`,
  },
];

const PROGRAMS: CorpusPage[] = [
  {
    name: "fetch-chain",
    body:
      SHOW +
      moduleScript(
        `for (let step = 1; step <= 5; step++) show(await (await fetch("/json?ms=80&step=" + step)).text())`,
      ),
  },
  {
    name: "fetch-after-timer",
    body:
      SHOW +
      script(`setTimeout(async () => show(await (await fetch("/json?ms=100")).text()), 150)`),
  },
  {
    name: "fetch-stream",
    body:
      SHOW +
      moduleScript(`const reader = (await fetch("/stream")).body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) { const { done, value } = await reader.read(); if (done) break; show(value) }`),
  },
  {
    name: "xhr",
    body:
      SHOW +
      script(`const request = new XMLHttpRequest(); request.open("GET", "/json?ms=200");
      request.onload = () => show(request.responseText); request.send()`),
  },
  {
    name: "dynamic-import",
    body: SHOW + moduleScript(`show((await import("/module.js?ms=150")).default)`),
  },
  {
    name: "routed-in-the-page",
    body:
      SHOW +
      script(`history.pushState({}, "", "?route=inbox");
      fetch("/json?ms=120&route=" + new URLSearchParams(location.search).get("route")).then((r) => r.text()).then(show)`),
  },
  {
    name: "preact",
    body: `<div id="app"></div>${moduleScript(`import { h, render, Component } from "/libraries/preact/dist/preact.mjs";
      class List extends Component {
        state = { rows: [] };
        async componentDidMount() {
          const { step } = await (await fetch("/json?ms=150&step=7")).json();
          this.setState({ rows: Array.from({ length: Number(step) }, (_, index) => index) });
        }
        render() { return h("ul", null, this.state.rows.map((row) => h("li", null, "row " + row))) }
      }
      render(h(List), document.querySelector("#app"))`)}`,
  },
  {
    name: "vue",
    head: library("vue/dist/vue.global.prod.js"),
    body: `<div id="app"><p v-for="row in rows">{{ row }}</p></div>${script(`Vue.createApp({
      data: () => ({ rows: [] }),
      async mounted() {
        for (const step of [1, 2, 3]) this.rows.push(await (await fetch("/json?ms=90&step=" + step)).text());
      },
    }).mount("#app")`)}`,
  },
  {
    name: "petite-vue",
    head: library("petite-vue/dist/petite-vue.iife.js"),
    body: `<div v-scope="{ text: 'first' }" @vue:mounted="fetch('/json?ms=200').then(r => r.text()).then(t => text = t)">{{ text }}</div>
      ${script("PetiteVue.createApp().mount()")}`,
  },
  {
    name: "alpine",
    head: `<script defer src="/libraries/alpinejs/dist/cdn.min.js"></script>`,
    body: `<div x-data="{ text: 'first' }" x-init="text = await (await fetch('/json?ms=200')).text()"><p x-text="text"></p></div>`,
  },
  {
    name: "htmx",
    head: library("htmx.org/dist/htmx.min.js"),
    body: `<div hx-get="/fragment?ms=200" hx-trigger="load">first</div>`,
  },
  {
    name: "counts-to-ten",
    body: `<p>0</p>${script(`let count = 0; const timer = setInterval(() => {
      document.querySelector("p").textContent = ++count; if (count === 10) clearInterval(timer) }, 100)`)}`,
  },
];

const worker = (code: string, kind = "Worker") =>
  `new ${kind}(URL.createObjectURL(new Blob([${JSON.stringify(code)}], { type: "text/javascript" })))`;
const BUSY = "const end = performance.now() + 400; while (performance.now() < end);";

const APART: CorpusPage[] = [
  {
    name: "worker",
    body:
      SHOW +
      script(`${worker(`${BUSY} postMessage("computed")`)}.onmessage = ({ data }) => show(data)`),
  },
  {
    name: "worker-that-fetches",
    body:
      SHOW +
      script(`const w = ${worker(`onmessage = async ({ data }) => postMessage(await (await fetch(data)).text())`)};
        w.onmessage = ({ data }) => show(data); w.postMessage(location.origin + "/json?ms=200")`),
  },
  {
    name: "worker-asked-three-times",
    body:
      SHOW +
      script(`const w = ${worker(`onmessage = ({ data }) => setTimeout(() => postMessage(data + 1), 150)`)};
        w.onmessage = ({ data }) => { show(data); if (data < 3) w.postMessage(data) }; w.postMessage(0)`),
  },
  {
    name: "worker-that-draws",
    body: `<canvas width="200" height="100"></canvas>${script(`const canvas = document.querySelector("canvas").transferControlToOffscreen();
      ${worker(`onmessage = ({ data }) => { const drawn = data.getContext("2d"); setTimeout(() => {
        drawn.fillStyle = "purple"; drawn.fillRect(20, 20, 120, 50) }, 200) }`)}.postMessage(canvas, [canvas])`)}`,
  },
  {
    name: "frame-of-text",
    body: `<iframe srcdoc="<p>first<script>let n = 0; const t = setInterval(() => { document.querySelector('p').textContent = ++n;
      if (n > 4) clearInterval(t) }, 120)</script>"></iframe>`,
  },
  {
    name: "frame-of-the-site",
    body: `<iframe src="/pages/fetch-chain" width=500 height=300></iframe>`,
  },
  {
    name: "frame-in-a-frame",
    body: `<iframe srcdoc='<iframe src="/pages/xhr"></iframe>' width=500 height=300></iframe>`,
  },
  {
    name: "frame-that-comes-late",
    body: script(
      `setTimeout(() => document.body.append(Object.assign(document.createElement("iframe"), { src: "/pages/static-text" })), 200)`,
    ),
  },
];

const FONT = "/libraries/@fontsource/lobster/files/lobster-latin-400-normal.woff2";
const FORMULA = "c = \\\\sqrt{a^2 + b^2} + \\\\int_0^1 x^2 dx";

const TYPE: CorpusPage[] = [
  {
    name: "font-of-a-sheet",
    head: `<style>@font-face { font-family: L; src: url(${FONT}) } h1 { font-family: L }</style>`,
    body: "<h1>A font of a sheet</h1>",
  },
  {
    name: "slow-font-that-swaps",
    head: `<style>@font-face { font-family: L; font-display: swap; src: url(/slow${FONT}?ms=400) } h1 { font-family: L }</style>`,
    body: "<h1>A slow font</h1>",
  },
  {
    name: "font-by-script",
    body: `<h1>A font by script</h1>${script(`new FontFace("L", "url(${FONT})").load().then((font) => {
      document.fonts.add(font); document.querySelector("h1").style.fontFamily = "L" })`)}`,
  },
  {
    name: "katex",
    head: sheet("katex/dist/katex.min.css") + library("katex/dist/katex.min.js"),
    body: `<p id="f"></p>${script(`katex.render("${FORMULA}", document.querySelector("#f"), { displayMode: true })`)}`,
  },
  {
    name: "katex-many",
    head: sheet("katex/dist/katex.min.css") + library("katex/dist/katex.min.js"),
    body: script(`for (let n = 1; n <= 40; n++) {
      const place = document.body.appendChild(document.createElement("p")); katex.render("x_{" + n + "} = \\\\frac{1}{" + n + "}", place) }`),
  },
  {
    name: "mathjax-svg",
    head: `<script async src="/libraries/mathjax/tex-svg.js"></script>`,
    body: `<p>Before \\(a^2 + b^2 = c^2\\) and after. $$\\sum_{n=1}^{10} n = 55$$`,
  },
  {
    name: "mathjax-chtml",
    head: `<script async src="/libraries/mathjax/tex-chtml.js"></script>`,
    body: `<p>Before \\(e^{i\\pi} = -1\\) and after.`,
  },
  {
    name: "prism",
    head: sheet("prismjs/themes/prism.css") + library("prismjs/prism.js"),
    body: `<pre><code class="language-javascript">${"const answer = (question) => question.length * 42;\n".repeat(30)}</code></pre>`,
  },
];

const mermaid = (diagram: string) =>
  `<pre class="mermaid">${diagram}</pre>${library("mermaid/dist/mermaid.min.js")}${script(`mermaid.initialize({ deterministicIds: true })`)}`;
const canvas = `<div style="width: 500px"><canvas width="500" height="300"></canvas></div>`;
const chart = (type: string, options = "") =>
  `${canvas}${script(`new Chart(document.querySelector("canvas"), { type: "${type}", ${options} data: {
    labels: ["a", "b", "c", "d"], datasets: [{ label: "Sales", data: [3, 7, 4, 9] }] } })`)}`;
const echart = (series: string, renderer: string, before = "") =>
  `<div id="chart" style="width: 500px; height: 300px"></div>${script(
    `${before}
    echarts.init(document.querySelector("#chart"), null, { renderer: "${renderer}" }).setOption({
      xAxis: { data: ["a", "b", "c"] }, yAxis: {}, series: [${series}] })`,
    "module",
  )}`;
const CHART = library("chart.js/dist/chart.umd.min.js");
const ECHARTS = library("echarts/dist/echarts.min.js");
const D3 = library("d3/dist/d3.min.js");

const DRAWN: CorpusPage[] = [
  {
    name: "mermaid-flow",
    body: mermaid("flowchart LR\n A[Client] --> B{Gateway} --> C[(State)]\n B --> D[Worker]"),
  },
  {
    name: "mermaid-sequence",
    body: mermaid("sequenceDiagram\n Alice->>Bob: Hello\n Bob-->>Alice: Hi"),
  },
  { name: "mermaid-pie", body: mermaid('pie title Pets\n "Dogs" : 386\n "Cats" : 85') },
  { name: "chart-bars", head: CHART, body: chart("bar") },
  {
    name: "chart-lines",
    head: CHART,
    body: chart("line", "options: { animation: { duration: 1400 } },"),
  },
  { name: "chart-doughnut", head: CHART, body: chart("doughnut") },
  {
    name: "chart-after-fetch",
    head: CHART,
    body: `${canvas}${moduleScript(`const { step } = await (await fetch("/json?ms=200&step=6")).json();
      new Chart(document.querySelector("canvas"), { type: "bar", data: { labels: ["x"], datasets: [{ data: [Number(step)] }] } })`)}`,
  },
  {
    name: "echarts-bars",
    head: ECHARTS,
    body: echart(`{ type: "bar", data: [5, 20, 36] }`, "canvas"),
  },
  {
    name: "echarts-svg",
    head: ECHARTS,
    body: echart(`{ type: "bar", data: [5, 20, 36] }`, "svg"),
  },
  {
    name: "echarts-after-fetch",
    head: ECHARTS,
    body: echart(`{ type: "bar", data: [1, 2, 3] }`, "canvas", `await fetch("/json?ms=200");`),
  },
  {
    name: "d3-transition",
    head: D3,
    body: `<svg width="400" height="200"></svg>${script(`d3.select("svg").selectAll("rect").data([30, 80, 140]).join("rect")
      .attr("x", (_, index) => index * 60).attr("width", 50).attr("height", 0).transition().duration(900).attr("height", (d) => d)`)}`,
  },
  {
    name: "d3-forces",
    head: D3,
    body: `<svg width="400" height="300"></svg>${script(`const nodes = d3.range(20).map((id) => ({ id }));
      const circles = d3.select("svg").selectAll("circle").data(nodes).join("circle").attr("r", 8);
      d3.forceSimulation(nodes).force("c", d3.forceCenter(200, 150)).force("m", d3.forceManyBody()).alphaDecay(0.1)
        .on("tick", () => circles.attr("cx", (d) => d.x).attr("cy", (d) => d.y))`)}`,
  },
  {
    name: "uplot",
    head: sheet("uplot/dist/uPlot.min.css") + library("uplot/dist/uPlot.iife.min.js"),
    body: script(`new uPlot({ width: 500, height: 300, scales: { x: { time: false } }, series: [{}, { stroke: "red" }] },
      [[1, 2, 3, 4], [40, 10, 60, 20]], document.body)`),
  },
  {
    name: "leaflet",
    head: sheet("leaflet/dist/leaflet.css") + library("leaflet/dist/leaflet.js"),
    body: `<div id="map" style="width: 500px; height: 300px"></div>${script(`L.tileLayer("/picture.svg?ms=100&at={z}-{x}-{y}")
      .addTo(L.map("map", { zoomControl: false, attributionControl: false }).setView([51.5, -0.1], 3))`)}`,
  },
];

const PAPER: CorpusPage[] = [
  {
    name: "paged-js",
    head: library("pagedjs/dist/paged.polyfill.min.js"),
    body: `<h1>Paged</h1><p>${WORDS.repeat(100)}`,
  },
  {
    name: "lazy-picture",
    body: `<p>Lazy<img loading="lazy" src="/picture.svg?ms=200" width="200" height="100">`,
  },
  {
    name: "lazy-by-observer",
    body: `<img data-src="/picture.svg?ms=150" width="200" height="100">${script(`new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) target.src = target.dataset.src
    }).observe(document.querySelector("img"))`)}`,
  },
  {
    name: "lazysizes",
    head: library("lazysizes/lazysizes.min.js"),
    body: `<img class="lazyload" data-src="/picture.svg?ms=150" width="200" height="100">`,
  },
  {
    name: "shadow-root",
    body: `<x-card></x-card>${script(`customElements.define("x-card", class extends HTMLElement {
      async connectedCallback() {
        this.attachShadow({ mode: "open" }).innerHTML = "<p>first";
        this.shadowRoot.querySelector("p").textContent = await (await fetch("/json?ms=200")).text();
      } })`)}`,
  },
  {
    name: "declared-shadow-root",
    body: "<div><template shadowrootmode=open><h2>In the shadow</h2></template></div>",
  },
];

const ENDLESS: CorpusPage[] = [
  {
    name: "event-stream",
    body: SHOW + script(`new EventSource("/events").onmessage = ({ data }) => show(data)`),
  },
  {
    name: "polls",
    body: SHOW + script(`show("polls"); setInterval(() => fetch("/json?ms=10"), 400)`),
  },
  {
    name: "endless-animation",
    head: "<style>@keyframes same { from, to { background: #c33 } } p { animation: same 1s infinite }</style>",
    body: `<p>Moves unseen${SHOW}${script(`fetch("/json?ms=300").then((r) => r.text()).then(show)`)}`,
  },
  {
    name: "endless-frames",
    body: `<p>Frames${SHOW}${script(`const frame = () => requestAnimationFrame(frame); frame();
      fetch("/json?ms=300").then((r) => r.text()).then(show)`)}`,
  },
];

export const CORPUS: readonly CorpusPage[] = [
  ...STATIC,
  ...PROGRAMS,
  ...APART,
  ...TYPE,
  ...DRAWN,
  ...PAPER,
  ...ENDLESS,
];
