/** The web page of a live view. It shows a page of a session to everyone who has its address. */
import { createHash } from "node:crypto";
import { type Response, Router } from "express";
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { devtoolsSessions } from "../../../schemas/rendering/devtools-sessions.ts";
import { Id } from "../../../schemas/values.ts";
import { parseRequest } from "../../http/parse-request.ts";
import { sha256 } from "../../http/sha256.ts";
import { type DevtoolsParts, DevtoolsSessions } from "./devtools-sessions.ts";
import { openSocket } from "./devtools-socket.ts";

const Path = z.object({ account_id: Id, session_id: Id });
const Query = z.looseObject({
  token: z.string().regex(/^[\w-]{43}$/, "Expected the complete address of a live view"),
});

/** Returns the router for `/live-view/{account_id}/{session_id}?token=` and for its WebSocket below `/socket`. */
export function liveViewRouter(parts: DevtoolsParts): Router {
  const sessions = new DevtoolsSessions(parts);
  const router = Router({ caseSensitive: true });
  router.get("/live-view/:account_id/:session_id", async ({ params, query }, response) => {
    await viewOf(params, query);
    response.set({ "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY });
    response.send(PAGE);
  });
  router.get("/live-view/:account_id/:session_id/socket", async (request, response: Response) => {
    const { params, query } = request;
    const { of, view } = await viewOf(params, query);
    await openSocket(response, {
      ...{ sessions, of, bus: parts.bus, targetId: view.targetId, isReadOnly: true },
      isStillGood: async () => parts.now() < view.expiresAt,
      endsInMs: view.expiresAt - parts.now(),
    });
  });
  return router;

  async function viewOf(params: unknown, query: unknown) {
    const path = parseRequest(Path, params, "/path") as z.output<typeof Path>;
    const { token } = parseRequest(Query, query, "/query") as z.output<typeof Query>;
    const of = { accountId: path.account_id, id: path.session_id };
    const asked = { id: of.id, hash: sha256(token) };
    const view = await parts.actors
      .call(devtoolsSessions, of.accountId, "findLiveView", asked)
      .catch((error: unknown) => {
        if (!(error instanceof ActorError && error.code === "not_found")) throw error;
        throw new ActorError(
          "not_found",
          "Cannot show page: this address is unknown or has expired",
        );
      });
    return { of, view };
  }
}

const SCRIPT = `
const state = document.querySelector("output");
const image = document.querySelector("img");
const url = new URL(location.href);
url.protocol = url.protocol.replace("http", "ws");
url.pathname += "/socket";
const socket = new WebSocket(url);
let last = 0;
const send = (method, params = {}) => socket.send(JSON.stringify({ id: ++last, method, params }));
socket.onopen = () => {
  state.textContent = "Live";
  send("Page.enable");
  send("Page.startScreencast", { format: "jpeg", quality: 70, maxWidth: 1920, maxHeight: 1920 });
};
socket.onmessage = ({ data }) => {
  const { method, params } = JSON.parse(data);
  if (method !== "Page.screencastFrame") return;
  image.src = "data:image/jpeg;base64," + params.data;
  send("Page.screencastFrameAck", { sessionId: params.sessionId });
};
socket.onclose = ({ reason }) => { state.textContent = "Ended" + (reason ? ": " + reason : ""); };
`;
const STYLE =
  "body{margin:0;font:14px system-ui;background:#222;color:#eee}output{display:block;padding:6px 10px}img{display:block;max-width:100%;background:#fff}";

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Live view – Trunkline</title><link rel="icon" href="data:,"><style>${STYLE}</style></head>
<body><output>Connecting</output><img alt="The page"><script>${SCRIPT}</script></body></html>
`;

const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The content security policy. The page loads nothing, and may connect only to its own origin. */
const POLICY = [
  "default-src 'none'",
  `script-src ${hash(SCRIPT)}`,
  `style-src ${hash(STYLE)}`,
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");
