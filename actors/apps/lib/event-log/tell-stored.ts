/** Reports to the account how many bytes a log stores, if the number has changed much. */
import { readAgentKey } from "../../../../schemas/apps/app-names.ts";
import { appUsage, countedBytes, isToBeTold } from "../../../../schemas/apps/app-usage.ts";
import { envelope } from "../../../../schemas/contract.ts";
import type { LogDraft } from "./log-draft.ts";

/** Reports the bytes of a log. The log's key is the key of its agent. */
export function tellStored<R>(
  draft: LogDraft<{ toldBytes?: number | undefined }, R>,
  part: "inbox" | "outgoing",
  bytes: number,
): void {
  const { key, state } = draft;
  if (!isToBeTold(bytes, state.toldBytes ?? 0)) return;
  const address = readAgentKey(key);
  if (!address) return;
  const told = countedBytes(bytes);
  draft.change({ toldBytes: told });
  draft.send(envelope(appUsage, address.accountId, "stored", { agent: key, part, bytes: told }));
}
