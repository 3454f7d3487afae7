/** Checks the bus: whether it answers, its version, and whether its user has the permissions that Trunkline needs. */
import { withoutPasswords } from "../../../actors/runtime/bus/bus-address.ts";
import { findNatsServer, isNatsServerSupported, NATS_SERVER_MIN } from "../../tools.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";
import { permissionFindings } from "./permissions.ts";

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
  findings.push(...(await permissionFindings(context.config)));
  return findings;
}

function missingBus({ config }: DoctorContext, found: string): Finding {
  const { natsUrl } = config;
  // Without this setting, the problem names it only as one of two ways to find a bus.
  const mend =
    natsUrl !== undefined && found.includes("TRUNKLINE_NATS_")
      ? "correct this setting, see docs/operate/security.md"
      : natsUrl === undefined
        ? "trunkline start"
        : `start nats-server at ${withoutPasswords(natsUrl)}, or correct TRUNKLINE_NATS_URL`;
  return { level: "failure", about: "bus", found, wanted: "a bus that answers", mend };
}

/** Checks that the program of the embedded bus exists. */
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
