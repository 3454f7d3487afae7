/** Sends app code's calls of agents through the host, which knows where each agent is. */
import { deserialize, serialize } from "node:v8";
import { running } from "../package/current-agent.ts";
import type { AgentCalls } from "../package/namespace.ts";
import { AgentRefusal } from "../package/refusal.ts";
import { PROPS_HEADER, toProcessRequest, toResponse } from "./exchange.ts";
import type { HostLink } from "./host-link.ts";

export function agentCalls(className: string, link: HostLink, bytesMax: number): AgentCalls {
  return {
    async fetch(name, props, request) {
      const wire = await toProcessRequest(request, bytesMax);
      if (props !== undefined) {
        wire.headers.push([PROPS_HEADER, Buffer.from(serialize(props)).toString("base64")]);
      }
      const wanted = { type: "agent.request", className, name, request: wire } as const;
      const result = await link.operate(wanted, caller());
      if (result.type !== "answer") throw new TypeError("Cannot read the agent's answer");
      return toResponse(result.answer, link, request.url);
    },

    async invoke(name, props, { method, args }) {
      const invocation = serialize({ args, ...(props !== undefined && { props }) });
      if (invocation.length > bytesMax) {
        const text = `Cannot call ${method}: its arguments have more than ${bytesMax} bytes`;
        throw new AgentRefusal("body_too_large", text);
      }
      const called = { className, name, method, args: new Uint8Array(invocation) };
      const result = await link.operate({ type: "agent.invoke", ...called }, caller());
      if (result.type !== "invoked") throw new TypeError("Cannot read what the agent gave");
      return deserialize(result.result);
    },
  };
}

/**
 * Returns the calling agent, and the record that the call waits for: the call is sent after the agent's writes are
 * durable.
 */
function caller() {
  const { open } = running() ?? {};
  return open && { number: open.number, after: open.gate.after() };
}
