/**
 * Opens an egress proxy for tests, and sends requests through it. The proxy resolves names of `.test` to loopback
 * addresses. It permits 127.0.0.2 and rejects 127.0.0.1.
 */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { createAddressPolicy } from "../../actors/egress/address-policy.ts";
import { createEgressGuard, type EgressGuardOptions } from "../../actors/egress/egress-guard.ts";
import { EgressProxy, type EgressProxyOptions } from "../../actors/egress/egress-proxy.ts";
import { EGRESS_HEADER_BYTES_MAX } from "../../schemas/limits.ts";

const NAMES: Record<string, string[]> = {
  "open.test": ["127.0.0.2"],
  "inside.test": ["127.0.0.1"],
  "both.test": ["127.0.0.2", "10.0.0.1"],
  "nothing.test": [],
};

export function openProxy(
  options: Partial<EgressProxyOptions> = {},
  guarded: Partial<EgressGuardOptions> = {},
) {
  const policy = createAddressPolicy({ allow: ["127.0.0.2/32"] });
  const lookup = async (name: string) => {
    const addresses = NAMES[name];
    if (addresses === undefined) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
    return addresses;
  };
  return EgressProxy.open({ guard: createEgressGuard({ policy, lookup, ...guarded }), ...options });
}

export interface Answer {
  status: number | undefined;
  message: string | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

/** One request through the proxy, over a connection of its own. */
export async function ask(
  proxy: EgressProxy,
  url: string,
  options: RequestOptions & { body?: string } = {},
): Promise<Answer> {
  const { body, ...rest } = options;
  const { username, password } = proxy.credentials;
  const sent = httpRequest({
    ...rest,
    host: "127.0.0.1",
    port: portOf(proxy),
    path: url,
    agent: false,
    maxHeaderSize: 2 * EGRESS_HEADER_BYTES_MAX,
    headers: {
      Host: "x",
      ...rest.headers,
      "Proxy-Authorization": `Basic ${btoa(`${username}:${password}`)}`,
    },
  });
  sent.end(body);
  const [answer]: IncomingMessage[] = await once(sent, "response");
  if (answer === undefined) throw new Error("no answer");
  const { statusCode: status, statusMessage: message, headers } = answer;
  return { status, message, headers, body: await text(answer) };
}

/** Sends bytes unchanged to the proxy, and returns all bytes that the proxy sends until it closes the connection. */
export async function talk(proxy: EgressProxy, bytes: string): Promise<string> {
  const client = connect(portOf(proxy), "127.0.0.1");
  client.write(bytes);
  try {
    return await text(client);
  } finally {
    client.destroy();
  }
}

export async function openTunnel(proxy: EgressProxy, authority: string): Promise<Socket> {
  const client = connect(portOf(proxy), "127.0.0.1");
  client.write(connectTo(proxy, authority));
  const [chunk] = await once(client, "data");
  client.pause();
  const head = "HTTP/1.1 200 Connection Established\r\n\r\n";
  expect(String(chunk.subarray(0, head.length))).to.equal(head);
  if (chunk.length > head.length) client.unshift(chunk.subarray(head.length));
  return client;
}

export function connectTo(proxy: EgressProxy, authority: string): string {
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization(proxy)}\r\n`;
}

export function authorization(proxy: EgressProxy): string {
  const { username, password } = proxy.credentials;
  return `Proxy-Authorization: Basic ${btoa(`${username}:${password}`)}\r\n`;
}

export function portOf(proxy: EgressProxy): number {
  return Number(new URL(proxy.url).port);
}

export function codes(proxy: EgressProxy): string[] {
  return proxy.failures.map((failure) => failure.code);
}

/** Resolves when the socket is closed, whether by an end or by a reset. */
export async function gone(socket: Socket): Promise<void> {
  await new Promise((resolve) => {
    socket
      .resume()
      .on("error", () => {})
      .once("close", resolve);
  });
}

/** Waits for `count` turns of the event loop, so that callbacks that are ready can run. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
