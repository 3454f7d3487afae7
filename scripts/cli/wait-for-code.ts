/** Listens on a port of this machine until the authorization server redirects the browser to it. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { COMMAND_LINE_CALLBACK } from "../../schemas/oauth/command-line.ts";
import { CommandFailure } from "./command.ts";

/** Maximum time to wait until the person answers in the browser. The server waits equally long. */
const WAIT_MS_MAX = 10 * 60_000;

interface WaitingForCode extends AsyncDisposable {
  redirectUri: string;
  /** Resolves with the authorization code. Rejects if the person refuses or does not answer in time. */
  code: Promise<string>;
}

export async function waitForCode(expected: {
  state: string;
  issuer: string;
}): Promise<WaitingForCode> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  // Prevents an unhandled rejection if `code` rejects before the caller awaits it.
  promise.catch(() => {});
  const callback = new URL(COMMAND_LINE_CALLBACK);
  const server = createServer(answer);
  server.listen(0, callback.hostname);
  await once(server, "listening");
  callback.port = String((server.address() as AddressInfo).port);
  const timer = setTimeout(() => {
    reject(new CommandFailure("Cannot log in: no permission was given within ten minutes"));
  }, WAIT_MS_MAX);
  return {
    redirectUri: callback.href,
    code: promise,
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      server.close();
      // Closes only idle connections, because a response page may still be on its way to the browser.
      server.closeIdleConnections();
    },
  };

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? "/", callback);
    const code = searchParams.get("code");
    if (request.method !== "GET" || pathname !== callback.pathname) {
      page(response, 404, "There is nothing here.");
    } else if (!isExpected(searchParams)) {
      page(response, 400, "This is not the login that was asked for.");
    } else if (code !== null) {
      page(response, 200, "You are logged in. You can close this window.");
      resolve(code);
    } else {
      page(response, 200, "You are not logged in. You can close this window.");
      reject(new CommandFailure(`Cannot log in: ${refusalOf(searchParams)}`));
    }
  }

  /** Checks `state` and `iss`, because any web page could send a browser to this port. */
  function isExpected(answered: URLSearchParams): boolean {
    return answered.get("state") === expected.state && answered.get("iss") === expected.issuer;
  }
}

function refusalOf(answered: URLSearchParams): string {
  const error = answered.get("error");
  if (error === "access_denied") return "you did not allow it";
  return answered.get("error_description") ?? error ?? "no code came";
}

function page(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'",
    "Cache-Control": "no-store",
    // The browser must not keep the connection open, because the process ends after this response.
    Connection: "close",
  });
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>Trunkline</title><h1>Trunkline</h1><p>${text}</p></html>`,
  );
}
