/** Checks the streams of the bus: their replicas and their free space. */
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { LOSABLE_STREAMS } from "../../../schemas/subjects.ts";
import type { Config } from "../../config.ts";
import { readStreams, type StreamFigures } from "../../queues/queues.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";

/** A stream that has used this share of its byte limit counts as nearly full. */
const FULL_SHARE = 0.9;
const MB = 1_000_000;

export async function checkStreams({ bus, config }: DoctorContext): Promise<readonly Finding[]> {
  const connected = await bus;
  if (connected === undefined) return [];
  const { replicas } = config;
  const startServers = `start the servers of the bus that are away; ${reportCommand(config, connected)} names them`;
  const streams = await readStreams(connected).catch(() => undefined);
  if (streams === undefined) return [noAnswer(startServers)];
  if (streams.length === 0) return [good("streams", "none: the first start makes them", "streams")];
  const findings = streams.flatMap((stream) => [
    ...copiesFinding(stream, {
      replicas: LOSABLE_STREAMS.has(stream.stream) ? 1 : replicas,
      startServers,
    }),
    ...roomFinding(stream),
  ]);
  if (findings.length > 0) return findings;
  const found = `${streams.length}, each with ${replicas === 1 ? "its copy" : `${replicas} current copies`}`;
  return [good("streams", found, "current copies")];
}

/**
 * Returns the command that lists the servers of the bus, also those that are away. Only the user `system` may run it.
 * A key of another user in the environment would take precedence over this user, so the command unsets it.
 */
function reportCommand({ natsUrl, natsTls, dataDir }: Config, { connection }: Bus): string {
  if (natsUrl === undefined) {
    return `nats -s "$(cat '${dataDir}/nats.system.url')" server report jetstream`;
  }
  const { caFile, certFile, keyFile } = natsTls ?? {};
  const tls = Object.entries({ "--tlsca": caFile, "--tlscert": certFile, "--tlskey": keyFile })
    .flatMap(([option, file]) => (file === undefined ? [] : [` ${option} '${file}'`]))
    .join("");
  const address = `nats://system:$TRUNKLINE_NATS_SYSTEM_PASSWORD@${connection.getServer()}`;
  return `NATS_NKEY= nats -s "${address}"${tls} server report jetstream`;
}

const noAnswer = (mend: string): Finding => ({
  level: "failure",
  about: "streams",
  found: "no answer of JetStream",
  wanted: "a leader, for which a majority of the servers must run",
  mend,
});

function copiesFinding(
  { stream, behind, info }: StreamFigures,
  { replicas, startServers }: { replicas: number; startServers: string },
): Finding[] {
  const about = `stream ${stream}`;
  const wanted = replicas === 1 ? "1 current copy" : `${replicas} current copies`;
  if (info === undefined) {
    // The service continues without a stream whose content may be lost.
    const level = LOSABLE_STREAMS.has(stream) ? "warning" : "failure";
    return [{ level, about, found: "no leader", wanted, mend: startServers }];
  }
  const { num_replicas: copies } = info.config;
  if (copies !== replicas) {
    const mend = `TRUNKLINE_REPLICAS=${copies}, or stop all hosts and start them with ${replicas}`;
    const level = copies > replicas ? "failure" : "warning";
    return [{ level, about, found: `${copies} copies by its configuration`, wanted, mend }];
  }
  if (behind === 0) return [];
  const found = `${copies - behind} of ${copies} copies current`;
  const mend = `wait if it catches up; else nats stream info ${stream} names the server to start or mend`;
  return [{ level: "warning", about, found, wanted, mend }];
}

/** Checks only streams that refuse new messages when they are full. The other streams drop old messages instead. */
function roomFinding({ stream, info, refusesAtBytes: max }: StreamFigures): Finding[] {
  const bytes = info?.state.bytes ?? 0;
  if (max === undefined || bytes < FULL_SHARE * max) return [];
  return [
    {
      level: bytes >= max ? "failure" : "warning",
      about: `stream ${stream}`,
      found: `${inMb(bytes)} of ${inMb(max)} used`,
      wanted: `less than ${100 * FULL_SHARE} %`,
      mend: "find the account that stores most, or give the bus a larger disk and set TRUNKLINE_STORE_BYTES on the processes with the role actors; see the runbook",
    },
  ];
}

const inMb = (bytes: number) => `${Math.floor(bytes / MB)} MB`;
