/** Checks the streams of the bus: their replicas and their free space. */
import { LOSABLE_STREAMS } from "../../../schemas/subjects.ts";
import { readStreams, type StreamFigures } from "../../queues/queues.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";

/** A stream that has used this share of its byte limit counts as nearly full. */
const FULL_SHARE = 0.9;
const MB = 1_000_000;

const NO_ANSWER: Finding = {
  level: "failure",
  about: "streams",
  found: "no answer of JetStream",
  wanted: "a leader, for which a majority of the servers must run",
  mend: "start the servers of the bus that are away; nats server report jetstream names them",
};

export async function checkStreams({
  bus,
  config: { replicas },
}: DoctorContext): Promise<readonly Finding[]> {
  const connected = await bus;
  if (connected === undefined) return [];
  const streams = await readStreams(connected).catch(() => undefined);
  if (streams === undefined) return [NO_ANSWER];
  if (streams.length === 0) return [good("streams", "none: the first start makes them", "streams")];
  const findings = streams.flatMap((stream) => [
    ...copiesFinding(stream, LOSABLE_STREAMS.has(stream.stream) ? 1 : replicas),
    ...roomFinding(stream),
  ]);
  if (findings.length > 0) return findings;
  const found = `${streams.length}, each with ${replicas === 1 ? "its copy" : `${replicas} current copies`}`;
  return [good("streams", found, "current copies")];
}

function copiesFinding({ stream, behind, info }: StreamFigures, replicas: number): Finding[] {
  const about = `stream ${stream}`;
  const wanted = replicas === 1 ? "1 current copy" : `${replicas} current copies`;
  if (info === undefined) {
    const mend = `start the servers of the bus that are away; nats stream info ${stream} names them`;
    return [{ level: "failure", about, found: "no leader", wanted, mend }];
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
