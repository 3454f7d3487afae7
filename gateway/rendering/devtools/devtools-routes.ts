/** The REST routes of DevTools sessions. Their JSON has no envelope, as clients of the public API expect. */

import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { SESSION_BODY_BYTES_MAX } from "../../../schemas/rendering/devtools-limits.ts";
import {
  BeginBody,
  BeginQuery,
  LaunchQuery,
  LiveViewBody,
  NewTargetQuery,
  SessionPath,
  SessionsQuery,
  TargetPath,
  TargetsQuery,
  WireBegun,
  WireLiveView,
  WireMessage,
  WireProtocol,
  WireSession,
  WireStatus,
  WireTarget,
  WireVersion,
} from "../../../schemas/rendering/http/devtools.ts";
import { defineRoute, type Route, type Tag } from "../../http/route.ts";
import { type DevtoolsRoutesParts, devtoolsHandlers } from "./devtools-handlers.ts";

const DEVTOOLS_TAG: Tag = {
  name: "DevTools",
  description:
    "Browsers that puppeteer, playwright and other clients of the DevTools protocol drive",
};

const DEVTOOLS = "/accounts/{account_id}/browser-rendering/devtools";
const ALIAS = "/accounts/{account_id}/browser-run/devtools";

const at = (path: string) => ({ path: DEVTOOLS + path, alias: ALIAS + path });
const READS = {
  tag: DEVTOOLS_TAG,
  permissions: ["browser-rendering.read"],
  query: nothing,
} as const;
const WRITES = {
  tag: DEVTOOLS_TAG,
  permissions: ["browser-rendering.write"],
  query: nothing,
} as const;
const OF_SESSION = { parameters: SessionPath } as const;
const OF_TARGET = { parameters: TargetPath } as const;
/** The declaration of routes that open a WebSocket for the DevTools protocol. */
const SOCKET = {
  answer: {
    mediaType: "application/json",
    description: "With `Upgrade: websocket`, a WebSocket that speaks the DevTools protocol",
    also: { 101: "A WebSocket of the DevTools protocol" },
  },
} as const;
const BEGINS = ["limit_reached", "browser_time_exceeded"] as const;

/** All routes of DevTools sessions. */
export function devtoolsRoutes(parts: DevtoolsRoutesParts): Route[] {
  const handlers = devtoolsHandlers(parts);
  return [
    ...browserRoutes(handlers),
    ...targetRoutes(handlers),
    defineRoute({
      ...{ ...READS, ...at("/session"), method: "get", parameters: AccountPath },
      id: "listDevtoolsSessions",
      summary: "List the running sessions",
      query: SessionsQuery,
      answer: { bare: WireSession.array() },
      handle: handlers.list,
    }),
    defineRoute({
      ...{ ...READS, ...OF_SESSION, ...at("/session/{session_id}"), method: "get" },
      id: "getDevtoolsSession",
      summary: "Get a session that runs or ended recently",
      answer: { bare: WireSession },
      handle: handlers.get,
    }),
  ];
}

type Handlers = ReturnType<typeof devtoolsHandlers>;

function browserRoutes(handlers: Handlers): Route[] {
  const { launch, connect, connectToTarget } = handlers;
  return [
    defineRoute({
      ...{ ...WRITES, ...at("/browser"), method: "post", parameters: AccountPath },
      id: "beginDevtoolsSession",
      summary: "Start a session with its own browser",
      query: BeginQuery,
      body: { schema: BeginBody, bytesMax: SESSION_BODY_BYTES_MAX, isOptional: true },
      refusals: BEGINS,
      answer: { bare: WireBegun },
      handle: handlers.begin,
    }),
    defineRoute({
      ...{ ...WRITES, ...SOCKET, ...at("/browser"), method: "get", parameters: AccountPath },
      id: "launchDevtoolsSession",
      summary: "Start a session and open its WebSocket in one step",
      query: LaunchQuery,
      refusals: BEGINS,
      handle: launch,
    }),
    defineRoute({
      ...{ ...WRITES, ...SOCKET, ...OF_SESSION, ...at("/browser/{session_id}"), method: "get" },
      id: "connectDevtoolsSession",
      summary: "Open the WebSocket of a session",
      query: LaunchQuery,
      refusals: ["limit_reached"],
      handle: connect,
    }),
    defineRoute({
      ...{ ...WRITES, ...OF_SESSION, ...at("/browser/{session_id}"), method: "delete" },
      id: "endDevtoolsSession",
      summary: "End a session",
      answer: { bare: WireStatus },
      handle: handlers.end,
    }),
    defineRoute({
      ...{ ...WRITES, ...SOCKET, ...OF_TARGET, method: "get" },
      ...at("/browser/{session_id}/page/{target_id}"),
      id: "connectDevtoolsTarget",
      summary: "Open the WebSocket of one page or other target",
      refusals: ["limit_reached"],
      handle: connectToTarget,
    }),
    defineRoute({
      ...{ ...WRITES, ...OF_SESSION, ...at("/browser/{session_id}/live_view"), method: "post" },
      id: "makeLiveView",
      summary: "Create an address that shows a page until it expires",
      body: { schema: LiveViewBody, bytesMax: SESSION_BODY_BYTES_MAX, isOptional: true },
      answer: { bare: WireLiveView },
      handle: handlers.makeLiveView,
    }),
  ];
}

function targetRoutes(handlers: Handlers): Route[] {
  const json = (path: string) => at(`/browser/{session_id}/json${path}`);
  return [
    defineRoute({
      ...{ ...READS, ...OF_SESSION, ...json("/version"), method: "get" },
      id: "getDevtoolsVersion",
      summary: "Get the versions of the browser and of the protocol",
      answer: { bare: WireVersion },
      handle: handlers.version,
    }),
    defineRoute({
      ...{ ...READS, ...OF_SESSION, ...json("/protocol"), method: "get" },
      id: "getDevtoolsProtocol",
      summary: "List the commands and events that a session offers",
      answer: { bare: WireProtocol },
      handle: handlers.protocol,
    }),
    defineRoute({
      ...{ ...READS, ...OF_SESSION, ...json("/list"), method: "get" },
      id: "listDevtoolsTargets",
      summary: "List the pages and other targets of a session",
      query: TargetsQuery,
      answer: { bare: WireTarget.array() },
      handle: handlers.listTargets,
    }),
    defineRoute({
      ...{ ...READS, ...OF_TARGET, ...json("/list/{target_id}"), method: "get" },
      id: "getDevtoolsTarget",
      summary: "Get a target of a session",
      answer: { bare: WireTarget },
      handle: handlers.getTarget,
    }),
    defineRoute({
      ...{ ...WRITES, ...OF_SESSION, ...json("/new"), method: "put" },
      id: "newDevtoolsTarget",
      summary: "Open a page",
      query: NewTargetQuery,
      answer: { bare: WireTarget },
      handle: handlers.newTarget,
    }),
    defineRoute({
      ...{ ...WRITES, ...OF_TARGET, ...json("/activate/{target_id}"), method: "get" },
      id: "activateDevtoolsTarget",
      summary: "Bring a page to the front",
      answer: { bare: WireMessage },
      handle: handlers.activateTarget,
    }),
    defineRoute({
      ...{ ...WRITES, ...OF_TARGET, ...json("/close/{target_id}"), method: "get" },
      id: "closeDevtoolsTarget",
      summary: "Close a page",
      answer: { bare: WireMessage },
      handle: handlers.closeTarget,
    }),
  ];
}
