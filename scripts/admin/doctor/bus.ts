/** Looks at the bus: whether it answers, its version, and whether its user may do what Trunkline does. */
import { setImmediate as turn } from "node:timers/promises";
import { headers, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { withoutPasswords } from "../../../actors/runtime/bus/bus-address.ts";
import { stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { findNatsServer, isNatsServerSupported, NATS_SERVER_MIN } from "../../tools.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";

/** Subjects of each sort that Trunkline writes. No host and no lane has these names. */
const WRITTEN = [
  stateSubjects(stateBucket(0)).all.replace(">", "doctor"),
  "mail.doctor",
  "task.doctor",
  "blob.crawl.doctor",
  "agentlog.doctor",
  "shard.doctor",
  "live.doctor",
  "$JS.API.INFO",
];
const READ = ["shard.doctor", "live.doctor", "_INBOX.doctor"];

export async function checkBus(context: DoctorContext): Promise<readonly Finding[]> {
  const problem = await context.busProblem;
  const findings = context.config.natsUrl === undefined ? [serverFinding()] : [];
  const bus = await context.bus;
  if (bus === undefined) return [...findings, missingBus(context, problem ?? "no answer")];
  const { connection } = bus;
  const version = connection.info?.version ?? "0";
  findings.push(versionFinding(version, connection.getServer()));
  if (connection.info?.jetstream !== true) {
    const mend = "add jetstream {} to the servers' configuration, as nats.conf has it";
    findings.push({ level: "failure", about: "JetStream", found: "off", wanted: "on", mend });
  }
  findings.push(await permissionsFinding(bus));
  return findings;
}

function missingBus({ config }: DoctorContext, found: string): Finding {
  const { natsUrl } = config;
  const mend =
    natsUrl === undefined
      ? "trunkline start"
      : `start nats-server at ${withoutPasswords(natsUrl)}, or correct TRUNKLINE_NATS_URL`;
  return { level: "failure", about: "bus", found, wanted: "a bus that answers", mend };
}

/** Looks for the program of the embedded bus. */
function serverFinding(): Finding {
  const wanted = `${NATS_SERVER_MIN} or newer`;
  try {
    return good("nats-server", findNatsServer(), wanted);
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    return { level: "failure", about: "nats-server", found, wanted, mend: "trunkline start" };
  }
}

function versionFinding(version: string, address: string): Finding {
  const found = `nats-server ${version} at ${address}`;
  const wanted = `${NATS_SERVER_MIN} or newer`;
  if (isNatsServerSupported(version)) return good("bus", found, wanted);
  const mend = "install a newer nats-server: https://github.com/nats-io/nats-server/releases";
  return { level: "failure", about: "bus", found, wanted, mend };
}

async function permissionsFinding({ connection }: Bus): Promise<Finding> {
  const about = "permissions";
  const wanted = "all that Trunkline uses on the bus";
  const refused = await refusedSubjects(connection);
  if (refused.length === 0) return good(about, wanted, wanted);
  const found = `the user may not ${refused.join(", ")}`;
  const mend =
    "give the user these permissions in the servers' configuration; nats.conf needs none";
  return { level: "failure", about, found, wanted, mend };
}

/** Tries each subject. The server reports refusals before it answers a ping that comes later. */
async function refusedSubjects(connection: NatsConnection): Promise<string[]> {
  const refused = new Set<string>();
  // Ends with the connection.
  void collectRefusals(connection, refused);
  for (const subject of READ) connection.subscribe(subject, { callback: () => {} });
  // No stream has this name, so no stream stores these messages.
  const nowhere = headers();
  nowhere.set("Nats-Expected-Stream", "doctor");
  for (const subject of WRITTEN) connection.publish(subject, "", { headers: nowhere });
  await connection.flush();
  await turn();
  return [...refused];
}

async function collectRefusals(connection: NatsConnection, refused: Set<string>): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type !== "error") continue;
    const { error } = status;
    if (error instanceof PermissionViolationError)
      refused.add(`${error.operation} ${error.subject}`);
  }
}
