/** Sends a push without git, with any commands and any bytes as its pack. */
import { createHash } from "node:crypto";
import type { RefCommand } from "../../../schemas/repositories/ref-command.ts";
import { FLUSH, pktLine } from "../git/pkt-line.ts";
import type { GitGateway, TestRepo } from "./git-world.ts";

/** The pack that git sends if the server needs no object. */
export const EMPTY_PACK = withSum(Buffer.from("5041434b0000000200000000", "hex"));

/** Appends the SHA-1 of the content, with which every pack must end. */
export function withSum(content: Uint8Array): Buffer {
  return Buffer.concat([content, createHash("sha1").update(content).digest()]);
}

export function pushBody(
  commands: readonly RefCommand[],
  pack: Uint8Array,
  capabilities = "report-status",
): Buffer<ArrayBuffer> {
  const lines = commands.map(({ old, value, ref }, number) =>
    pktLine(`${old} ${value} ${ref}${number === 0 ? `\0 ${capabilities}` : ""}\n`),
  );
  return Buffer.concat([...lines, FLUSH, pack]);
}

export async function post(
  gateway: GitGateway,
  repo: TestRepo,
  service: string,
  body: Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Record<string, string> = {},
): Promise<Response> {
  return await fetch(`${gateway.url}${repo.path}/${service}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${repo.token}`,
      "Content-Type": `application/x-${service}-request`,
      ...headers,
    },
    body,
    duplex: "half",
  });
}

/** Sends a push and returns the unparsed report. */
export async function rawPush(
  gateway: GitGateway,
  repo: TestRepo,
  commands: readonly RefCommand[],
  pack: Uint8Array = EMPTY_PACK,
): Promise<string> {
  const body = pushBody(
    commands,
    commands.every(({ value }) => /^0+$/.test(value)) ? Buffer.of() : pack,
  );
  return await (await post(gateway, repo, "git-receive-pack", body)).text();
}
