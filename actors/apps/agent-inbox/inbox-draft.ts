/** The draft of an inbox's next state while the inbox handles one message. */
import { strict as assert } from "node:assert";
import type { AppRequest } from "../../../schemas/apps/app-exchange.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import type { HandlerContext } from "../../runtime/kinds/define-actor.ts";
import { LogDraft } from "../lib/event-log/log-draft.ts";
import {
  type AgentInboxState,
  type EventRow,
  eventRow,
  type InboxRow,
  requestRow,
} from "./agent-inbox-state.ts";

export type InboxContext = HandlerContext<InboxRow>;

export class InboxDraft extends LogDraft<AgentInboxState, InboxRow> {
  /** The row of an event in the log. */
  event(number: number): DeepReadonly<EventRow> {
    const row = this.row(eventRow(number));
    assert(row?.row === "event", `Event ${number} is in the log`);
    return row;
  }

  request(number: number): DeepReadonly<AppRequest> {
    const row = this.row(requestRow(number));
    assert(row?.row === "request", `Event ${number} has its request`);
    return row.request;
  }
}
