/**
 * The reference of the git benchmarks: `git http-backend` as a CGI behind a plain Node server. Call:
 * `git-http-process <folder of repositories>`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { answerParent } from "../answer-parent.ts";

const [root = ""] = process.argv.slice(2);
const HEAD_END = Buffer.from("\r\n\r\n");

const server = createServer(serve).listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new Error("no port");
const { port } = address;

answerParent({
  answer: async () => `http://127.0.0.1:${port}`,
  async close() {
    server.closeAllConnections();
    server.close();
  },
});

/** Serves a request through CGI (RFC 3875), with the parts of the standard that git needs. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url ?? "/", "http://localhost");
  const { headers, method = "GET" } = request;
  const child = spawn("git", ["http-backend"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      PATH: process.env.PATH,
      HOME: root,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      REMOTE_USER: "bench",
      REMOTE_ADDR: "127.0.0.1",
      REQUEST_METHOD: method,
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: headers["content-type"] ?? "",
      ...(headers["content-length"] && { CONTENT_LENGTH: headers["content-length"] }),
      ...(headers["content-encoding"] && { HTTP_CONTENT_ENCODING: headers["content-encoding"] }),
      ...(headers["git-protocol"] && { GIT_PROTOCOL: String(headers["git-protocol"]) }),
    },
  });
  // Ignores write errors: git may exit before it has read all of its input.
  child.stdin.on("error", () => {});
  request.pipe(child.stdin);
  let head: Buffer | undefined = Buffer.alloc(0);
  child.stdout.on("data", (chunk: Buffer) => {
    if (head === undefined) {
      if (!response.write(chunk)) {
        child.stdout.pause();
        response.once("drain", () => child.stdout.resume());
      }
      return;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf(HEAD_END);
    if (end < 0) return;
    for (const line of head.toString("latin1", 0, end).split("\r\n")) {
      const [name = "", value = ""] = line.split(/: */, 2);
      if (name.toLowerCase() === "status") response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.write(head.subarray(end + HEAD_END.length));
    head = undefined;
  });
  child.stdout.once("end", () => response.end());
  response.once("close", () => child.kill());
}
