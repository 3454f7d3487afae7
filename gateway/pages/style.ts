/** The style sheet of all pages: one narrow column, in light or dark colours as the operating system prefers. */
import { createHash } from "node:crypto";

/** The colours of the pages and of the console. */
export const COLORS = `:root {
  color-scheme: light dark;
  --back: light-dark(#f3f4f6, #101317);
  --card: light-dark(#ffffff, #1a1f26);
  --text: light-dark(#1b2027, #e8ebef);
  --quiet: light-dark(#545d69, #a6b0bc);
  --line: light-dark(#c3c9d1, #3c4550);
  --field: light-dark(#7d8794, #7b8693);
  --accent: light-dark(#14598f, #7cc0f5);
  --on-accent: light-dark(#ffffff, #0a1a26);
  --bad: light-dark(#a31621, #ff9c9c);
  --bad-back: light-dark(#fdf0f0, #33191b);
  --good: light-dark(#17653a, #86d8a6);
  --good-back: light-dark(#eef8f1, #14291c);
}`;

export const STYLE = `
${COLORS}
*, *::before, *::after { box-sizing: border-box; }
html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
body {
  margin: 0; min-height: 100vh; padding: 1rem; background: var(--back); color: var(--text);
  display: flex; flex-direction: column; align-items: center; gap: 1rem;
  overflow-wrap: anywhere;
}
header.site { width: 100%; max-width: 30rem; margin-top: clamp(0rem, 6vh, 4rem); font-weight: 650; letter-spacing: 0.01em; }
header.site a { color: inherit; text-decoration: none; }
header.site::before {
  content: ""; display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.5em;
  border-radius: 0.2em; background: var(--accent); vertical-align: -0.05em;
}
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; width: 100%; max-width: 30rem; align-items: center; }
nav form { margin-left: auto; }
nav a[aria-current] { color: inherit; font-weight: 600; text-decoration: none; }
main {
  width: 100%; max-width: 30rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 0.75rem; padding: clamp(1.1rem, 5vw, 2rem);
}
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 0.75rem; text-wrap: balance; }
h2 { font-size: 1rem; margin: 1.5rem 0 0.5rem; }
p { margin: 0 0 0.75rem; }
a { color: var(--accent); }
form + p { margin-top: 1.1rem; }
main > :last-child, .granted > :last-child { margin-bottom: 0; }
.quiet { color: var(--quiet); font-size: 0.9rem; }
.field { margin: 0 0 1rem; }
.field label { display: block; font-weight: 600; margin-bottom: 0.25rem; }
input[type=email], input[type=password] {
  width: 100%; font: inherit; color: inherit; background: var(--card); padding: 0.55rem 0.7rem;
  border: 1px solid var(--field); border-radius: 0.4rem; min-height: 2.75rem;
}
input[aria-invalid=true] { border-color: var(--bad); }
input[type=checkbox] { width: 1.2rem; height: 1.2rem; margin: 0.15rem 0 0; accent-color: var(--accent); flex: none; }
button {
  font: inherit; font-weight: 600; cursor: pointer; min-height: 2.75rem; padding: 0.5rem 1.1rem;
  border: 1px solid var(--accent); border-radius: 0.4rem; background: var(--accent); color: var(--on-accent);
}
button.second { background: transparent; color: var(--accent); }
button.bad { border-color: var(--bad); background: transparent; color: var(--bad); }
button.plain { border: 0; padding: 0; min-height: 1.75rem; background: none; color: var(--accent); font-weight: 400; text-decoration: underline; }
:is(a, button, input):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.buttons { display: flex; flex-wrap: wrap; gap: 0.75rem; margin-top: 1.25rem; }
.buttons > * { flex: 1 1 8rem; }
.wide { width: 100%; }
.note { border-left: 4px solid; border-radius: 0.25rem; padding: 0.6rem 0.8rem; margin: 0 0 1rem; }
.note.bad { color: var(--bad); background: var(--bad-back); border-color: var(--bad); }
.note.good { color: var(--good); background: var(--good-back); border-color: var(--good); }
fieldset { border: 0; margin: 1.25rem 0 0; padding: 0; min-width: 0; }
legend { font-weight: 600; padding: 0; margin-bottom: 0.4rem; }
ul.plain { list-style: none; margin: 0; padding: 0; }
.item { display: flex; gap: 0.65rem; padding: 0.4rem 0; align-items: flex-start; }
.item .what { display: block; min-width: 0; }
.item .name { display: block; font-weight: 600; }
.item.off .name { color: var(--quiet); }
.mark { color: var(--good); flex: none; width: 1.2rem; text-align: center; }
.client { display: flex; gap: 0.9rem; align-items: center; margin-bottom: 1rem; }
.client h1 { margin: 0; }
.client img, .client .letter { width: 3.25rem; height: 3.25rem; border-radius: 0.6rem; flex: none; object-fit: contain; }
.client img { position: relative; }
.client .letter, .client img::after {
  display: grid; place-items: center; font-size: 1.5rem; font-weight: 650;
  background: var(--back); border: 1px solid var(--line);
}
.client img::after { content: attr(data-letter); position: absolute; inset: 0; border-radius: 0.6rem; }
.links { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; }
.rows li { border-top: 1px solid var(--line); padding: 0.6rem 0; }
.rows .name, .rows .quiet { display: block; }
.rows .name { font-weight: 600; }
.copy code { display: block; padding: 0.6rem 0.8rem; background: var(--back); border: 1px solid var(--line); border-radius: 0.4rem; user-select: all; }
a.button {
  display: grid; place-items: center; min-height: 2.75rem; padding: 0.5rem 1.1rem; font-weight: 600; text-decoration: none;
  border: 1px solid var(--accent); border-radius: 0.4rem; color: var(--accent);
}
.granted { border-top: 1px solid var(--line); padding: 1rem 0; }
.granted h2 { margin: 0 0 0.25rem; }
footer { color: var(--quiet); font-size: 0.85rem; max-width: 30rem; width: 100%; }
`;

/** Contains a hash of the content, so browsers can cache it for a year. */
export const STYLE_PATH = `/pages/style-${createHash("sha256").update(STYLE).digest("hex").slice(0, 12)}.css`;
