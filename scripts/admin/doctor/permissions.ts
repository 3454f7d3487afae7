/**
 * Checks the users of the bus: whether each has the permissions of its roles, and whether each role has its own user.
 */
import { setImmediate as turn } from "node:timers/promises";
import { headers, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import type { BusLogin } from "../../bus-users/bus-access.ts";
import { readPermissions } from "../../bus-users/permissions.ts";
import type { BusUserName } from "../../bus-users/users.ts";
import type { Config } from "../../config.ts";
import { roleLogins } from "../bus-of.ts";
import { type Finding, good } from "./check.ts";

/** A subject that no role needs. */
const EVERYTHING = "doctor.everything";
/** Requests that change nothing, whatever the last tokens of their subjects are. */
const HARMLESS =
  /^\$JS\.API\.(INFO|STREAM\.(NAMES|LIST|INFO)|CONSUMER\.(LIST|INFO)|STREAM\.MSG\.GET|DIRECT\.GET)\b/;

export async function permissionFindings(config: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  let logins: Awaited<ReturnType<typeof roleLogins>>;
  try {
    logins = await roleLogins(config);
  } catch (error) {
    return [loginFinding(config, error)];
  }
  for (const { roles, login } of logins) {
    const bus = await Bus.connect({ ...login, name: "trunkline-doctor" });
    try {
      findings.push(...(await findingsOf(bus, roles, login)));
    } finally {
      await bus.close();
    }
  }
  return findings;
}

/** The bus answered one user, but the login of another role of this process cannot be read. */
function loginFinding({ natsUrl }: Config, error: unknown): Finding {
  const found = error instanceof Error ? error.message : String(error);
  const mend =
    natsUrl === undefined
      ? "run the doctor as the user that runs Trunkline; a restart of Trunkline makes seeds that are missing"
      : "set TRUNKLINE_NATS_NKEYS to a folder with the seed of each role, or to the seed of the only role: trunkline admin bus-credentials <folder> makes missing ones";
  const wanted = "a seed for each role of this process";
  return { level: "failure", about: "users of the bus", found, wanted, mend };
}

async function findingsOf(
  { connection }: Bus,
  roles: readonly BusUserName[],
  { role }: BusLogin,
): Promise<Finding[]> {
  const about = role === undefined ? "permissions" : `permissions of ${role}`;
  const wanted = `all that ${roles.join(", ")} ${roles.length === 1 ? "uses" : "use"} on the bus`;
  const refused = await refusedSubjects(connection, roles);
  const mayAll = !refused.delete(`publish ${EVERYTHING}`);
  if (refused.size > 0) {
    const found = `the user may not ${[...refused].join(", ")}`;
    const mend =
      "give every server the bus-users.conf of this version: trunkline admin bus-credentials <folder>";
    return [{ level: "failure", about, found, wanted, mend }];
  }
  // The user admin may have all permissions, because commands of people use this user.
  if (!mayAll || role === "admin") return [good(about, wanted, wanted)];
  const found = "one user with all rights";
  const mend = "trunkline admin bus-credentials <folder>, see docs/operate/security.md";
  return [
    good(about, wanted, wanted),
    { level: "warning", about: "users of the bus", found, wanted: "a user for each role", mend },
  ];
}

/**
 * Publishes and subscribes to each subject to find refused ones. The server reports refusals before it answers a
 * later ping.
 */
async function refusedSubjects(
  connection: NatsConnection,
  roles: readonly BusUserName[],
): Promise<Set<string>> {
  const refused = new Set<string>();
  // This loop ends when the connection closes.
  void collectRefusals(connection, refused);
  const permissions = roles.map(readPermissions);
  const read = permissions.flatMap(({ subscribe }) => subscribe.allow);
  for (const subject of new Set(read.map(nobodysSubject))) {
    connection.subscribe(subject, { callback: () => {} });
  }
  // This header names a stream that does not exist, so no stream stores the messages.
  const nowhere = headers();
  nowhere.set("Nats-Expected-Stream", "doctor");
  const written = permissions.flatMap(({ publish }) => publish.allow.filter(isHarmless));
  for (const subject of new Set([...written.map(nobodysSubject), EVERYTHING])) {
    connection.publish(subject, "", { headers: nowhere });
  }
  await connection.flush();
  await turn();
  return refused;
}

/**
 * Returns true if the check may use the subject. A message to a subject without a wildcard would reach a role. Of the
 * requests to JetStream (`$JS.`), some remove data, so only harmless ones are used.
 */
const isHarmless = (subject: string) =>
  subject.startsWith("$JS.") ? HARMLESS.test(subject) : /[*>]/.test(subject);

/** Replaces the wildcards of a subject by a name that no host, lane or stream has. */
const nobodysSubject = (subject: string) => subject.replaceAll(/(?<=^|\.)[*>](?=\.|$)/g, "doctor");

async function collectRefusals(connection: NatsConnection, refused: Set<string>): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type !== "error") continue;
    const { error } = status;
    if (error instanceof PermissionViolationError)
      refused.add(`${error.operation} ${error.subject}`);
  }
}
