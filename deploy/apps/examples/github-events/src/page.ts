/** The page: a list of repositories and the events of one of them, as their agents send both. */
export const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>GitHub events</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #1c2128; }
  nav button { font: inherit; margin: 0 .5rem .5rem 0; padding: .25rem .75rem; border: 1px solid #d0d7de; border-radius: 1rem; background: #fff; cursor: pointer; }
  nav button[aria-pressed=true] { background: #0b5cad; border-color: #0b5cad; color: #fff; }
  ol { list-style: none; padding: 0; }
  li { display: flex; gap: 1rem; padding: .5rem 0; border-bottom: 1px solid #eaeef2; }
  li b { min-width: 8rem; } li time { margin-left: auto; color: #59636e; }
</style>
<h1>GitHub events</h1>
<nav id="repositories" aria-label="Repositories"></nav>
<p id="status" role="status">Waiting for the first event</p>
<ol id="events"></ol>
<script>
  let shown, watched;
  const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  function watch(path, show) {
    let ended = false, socket;
    const open = () => {
      socket = new WebSocket(location.origin.replace("http", "ws") + "/agents/" + path);
      socket.onmessage = ({ data }) => {
        const { type, state } = JSON.parse(data);
        if (type === "cf_agent_state") show(state);
      };
      socket.onclose = () => ended || setTimeout(open, 1000);
    };
    open();
    return () => { ended = true; socket.close(); };
  }
  watch("overview/all", ({ repositories }) => {
    const buttons = Object.entries(repositories).map(([name, { repository, events }]) => {
      const button = element("button", repository + " " + events);
      button.dataset.name = name;
      button.onclick = () => choose(name);
      if (shown === undefined) choose(name);
      button.setAttribute("aria-pressed", name === shown);
      return button;
    });
    document.querySelector("#repositories").replaceChildren(...buttons);
  });
  function choose(name) {
    shown = name;
    watched?.();
    watched = watch("repository/" + encodeURIComponent(name), ({ repository, events, latest }) => {
      document.querySelector("#status").textContent = repository + ": " + events + " events";
      document.querySelector("#events").replaceChildren(...latest.map(({ type, text, at }) => {
        const line = document.createElement("li");
        line.append(element("b", type), element("span", text), element("time", new Date(at).toLocaleTimeString()));
        return line;
      }));
    });
    for (const button of document.querySelectorAll("nav button")) {
      button.setAttribute("aria-pressed", button.dataset.name === name);
    }
  }
</script>
`;
