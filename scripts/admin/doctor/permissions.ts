/** Checks the users of the bus: whether they have the rights of their roles, and whether each role has its own user. */
import { setImmediate as turn } from "node:timers/promises";
import { headers, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import type { BusLogin } from "../../bus-users/bus-access.ts";
import { type BusUserName, readPermissions } from "../../bus-users/permissions.ts";
import type { Config } from "../../config.ts";
import { roleLogins } from "../bus-of.ts";
import { type Finding, good } from "./check.ts";

/** A subject that no role needs. */
const EVERYTHING = "doctor.everything";
/** Requests that change nothing, whatever their subject ends with. */
const HARMLESS =
  /^\$JS\.API\.(INFO|STREAM\.(NAMES|LIST|INFO)|CONSUMER\.(LIST|INFO)|STREAM\.MSG\.GET|DIRECT\.GET)\b/;

export async function permissionFindings(config: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { roles, login } of await roleLogins(config)) {
    const bus = await Bus.connect({ ...login, name: "trunkline-doctor" });
    try {
      findings.push(...(await findingsOf(bus, roles, login)));
    } finally {
      await bus.close();
    }
  }
  return findings;
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
  // Commands of people use it.
  if (!mayAll || role === "admin") return [good(about, wanted, wanted)];
  const found = "one user with all rights";
  const mend = "trunkline admin bus-credentials <folder>, see docs/operate/security.md";
  return [
    good(about, wanted, wanted),
    { level: "warning", about: "users of the bus", found, wanted: "a user for each role", mend },
  ];
}

/** Tries each subject. The server reports refusals before it answers a ping that comes later. */
async function refusedSubjects(
  connection: NatsConnection,
  roles: readonly BusUserName[],
): Promise<Set<string>> {
  const refused = new Set<string>();
  // Ends with the connection.
  void collectRefusals(connection, refused);
  const permissions = roles.map(readPermissions);
  const read = permissions.flatMap(({ subscribe }) => subscribe.allow);
  for (const subject of new Set(read.map(nobodysSubject))) {
    connection.subscribe(subject, { callback: () => {} });
  }
  // No stream has this name, so no stream stores these messages.
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

/** Skips subjects without a wildcard: a message on such a subject would reach a role, and some requests remove data. */
const isHarmless = (subject: string) =>
  subject.startsWith("$JS.") ? HARMLESS.test(subject) : /[*>]/.test(subject);

/** No host, lane or stream has this name. */
const nobodysSubject = (subject: string) => subject.replaceAll(/(?<=^|\.)[*>](?=\.|$)/g, "doctor");

async function collectRefusals(connection: NatsConnection, refused: Set<string>): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type !== "error") continue;
    const { error } = status;
    if (error instanceof PermissionViolationError)
      refused.add(`${error.operation} ${error.subject}`);
  }
}
