/** The package `trunkline/agents`, which app code imports. */

export { Agent } from "./agent.ts";
export type { AgentContext, AgentStorage, SqlCursor, SqlStorage } from "./agent-context.ts";
export { ApiError, ArtifactsError } from "./api-error.ts";
export type {
  Artifacts,
  ArtifactsRepo,
  ArtifactsUsage,
  Commit,
  CreatedRepo,
  Diff,
  ForkedRepo,
  MadeCommit,
  MintedToken,
  Namespace,
  NewCommit,
  Ref,
  Repo,
  RepoDetails,
  RepoToken,
  TreeEntry,
} from "./artifacts.ts";
export type {
  Browser,
  BrowserUsage,
  Crawl,
  CrawlEntry,
  CrawlInput,
  PageInput,
  PageResult,
  PdfInput,
  ScreenshotInput,
} from "./browser.ts";
export {
  type CallableMetadata,
  callable,
  /** The older name of `callable`. */
  callable as unstable_callable,
  StreamingResponse,
} from "./callable.ts";
export type { Connection, ConnectionContext, WebSocketMessage, WSMessage } from "./connection.ts";
export { type CurrentAgent, getCurrentAgent } from "./current-agent.ts";
export { type AgentId, AgentNamespace, type AgentStub } from "./namespace.ts";
export { SqlError } from "./refusal.ts";
export type { RestBinding } from "./rest-binding.ts";
export {
  type AgentOptions,
  type AgentRoute,
  getAgentByName,
  type RouteOptions,
  routeAgentRequest,
} from "./routing.ts";
export { type TokenIdentity, timingSafeEqual, verifyToken } from "./tokens.ts";
export type {
  AgentClassOptions,
  QueueItem,
  RetryOptions,
  Schedule,
  ScheduleCriteria,
  ScheduleOptions,
  Submission,
  SubmissionContext,
  SubmissionReceipt,
  SubmissionStatus,
  SubmitOptions,
} from "./types.ts";
