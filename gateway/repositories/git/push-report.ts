/** Builds the response to a push: the result of its pack, and a line for each ref. */
import { FLUSH, pktLine, sideBand } from "./pkt-line.ts";
import type { PushRequest } from "./read-push.ts";

/**
 * `faults` has an entry for each command, in order: why its ref was not changed, or undefined if the command
 * succeeded.
 */
export interface PushOutcome {
  unpack: string;
  faults: readonly (string | undefined)[];
}

/** A message that git shows to the user as soon as it arrives, also while it still sends the pack. */
export const pushMessage = (text: string) => sideBand(2, Buffer.from(`${oneLine(text)}\n`));

/** A line without content. It shows that the connection is still alive. */
export const KEEP_ALIVE = pktLine(Buffer.of(1));

export function hasSideBand({ capabilities }: PushRequest): boolean {
  return capabilities.has("side-band-64k");
}

/** Returns whether the client reads a result for each ref. */
export function hasReport({ capabilities }: PushRequest): boolean {
  return capabilities.has("report-status") || capabilities.has("report-status-v2");
}

export function pushReport(request: PushRequest, { unpack, faults }: PushOutcome): Buffer {
  const reports = hasReport(request);
  const lines = request.commands.map(({ ref }, number) => {
    const fault = faults[number];
    return pktLine(fault === undefined ? `ok ${ref}\n` : `ng ${ref} ${oneLine(fault)}\n`);
  });
  const report = Buffer.concat([pktLine(`unpack ${oneLine(unpack)}\n`), ...lines, FLUSH]);
  if (!hasSideBand(request)) return reports ? report : Buffer.alloc(0);
  return Buffer.concat([...(reports ? [sideBand(1, report)] : []), FLUSH]);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what ends a line would begin another one of the report.
const oneLine = (text: string) => text.replace(/[\u0000-\u001f\u007f]+/g, " ").trim();
