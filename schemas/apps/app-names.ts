/** Names of apps, of their agents and of bindings. */
import { z } from "zod";
import { KEY_CHARS_MAX } from "../limits.ts";
import { encodeKey } from "../subjects.ts";
import { Id } from "../values.ts";
import { AGENT_NAME_CHARS_MAX } from "./limits.ts";

/** A DNS label, because an app's origin contains its name. */
export const AppName = z
  .string()
  .regex(
    /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    "expected 1 to 63 lower-case letters, digits and hyphens, a letter first and no hyphen last",
  );

/** The name of a class that a bundle exports. */
export const ClassName = z
  .string()
  .max(64)
  .regex(/^[A-Za-z_]\w*$/, "expected the name of a class: letters, digits and _");

/** A name in `env`. */
export const BindingName = z
  .string()
  .max(64)
  .regex(/^[A-Za-z_]\w*$/, "expected a name as in code: letters, digits and _, no digit first");

export const AgentName = z.string().min(1).max(AGENT_NAME_CHARS_MAX);

/** One agent of one account's app. */
export const AgentAddress = z.object({
  accountId: Id,
  app: AppName,
  className: ClassName,
  name: AgentName,
});
export type AgentAddress = z.infer<typeof AgentAddress>;

export const appKey = (accountId: string, app: string) => `${accountId}.${app}`;

export function readAppKey(key: string): { accountId: string; app: string } {
  const [accountId = "", app = ""] = key.split(".");
  return { accountId, app };
}

/** The agent's name comes last in the key, because it may contain dots. */
export const agentKey = ({ accountId, app, className, name }: AgentAddress) =>
  `${accountId}.${app}.${className}.${name}`;

/**
 * Limit of the characters of an encoded key. It leaves room for the name of any actor kind before the key in
 * subjects.
 */
const AGENT_KEY_CHARS_MAX = KEY_CHARS_MAX - 32;

/** Returns false if the key is not well-formed text, or is too long after the encoding for subjects. */
export const isAddress = (key: string): boolean =>
  key.isWellFormed() && encodeKey(key).length <= AGENT_KEY_CHARS_MAX;

/** Reads a key of `agentKey`. Returns undefined for other text. */
export function readAgentKey(key: string): AgentAddress | undefined {
  const [accountId, app, className, ...name] = key.split(".");
  const read = AgentAddress.safeParse({ accountId, app, className, name: name.join(".") });
  return read.success ? read.data : undefined;
}

export { kebabOf } from "../kebab.ts";
