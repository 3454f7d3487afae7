/** Checks that hosts of actors open what this machine's key of secrets seals. */
import { randomBytes } from "node:crypto";
import { findSecretBox } from "../../../actors/apps/lib/app-secrets/open-secret-box.ts";
import { SecretKeyError } from "../../../actors/apps/lib/app-secrets/secret-box.ts";
import { ask } from "../../../actors/runtime/bus/ask.ts";
import { NO_APP } from "../../../schemas/apps/outgoing-webhook.ts";
import {
  REQUEST_KEY_SUBJECT,
  RequestKeyAnswer,
  requestKeyName,
} from "../../../schemas/rendering/request-key.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";

/** Any host answers a question, so several questions reach most of the hosts. */
const QUESTIONS = 16;
const ANSWER_MS = 1_000;
const ABOUT = "secrets key";
const WANTED = "the same TRUNKLINE_SECRETS_KEY in every gateway and host of actors";

/**
 * Asks hosts to open a value, as a browser asks for the key of a job's request. Finds nothing if this machine has no
 * key yet, or if no host answers.
 */
export async function checkSecretsKey({ bus, config }: DoctorContext): Promise<readonly Finding[]> {
  const connected = await bus;
  if (connected === undefined) return [];
  let box: Awaited<ReturnType<typeof findSecretBox>>;
  try {
    box = await findSecretBox(config);
  } catch (error) {
    if (!(error instanceof SecretKeyError)) throw error;
    const mend = "put the copy of the key back";
    return [{ level: "failure", about: ABOUT, found: error.message, wanted: "a key", mend }];
  }
  if (box === undefined) return [];
  const [account, job] = [randomBytes(16).toString("hex"), randomBytes(16).toString("hex")];
  const sealedFor = { accountId: account, app: NO_APP, name: requestKeyName(job) };
  const question = JSON.stringify({ account, job, sealed: box.seal("probe", sealedFor) });
  let opened = 0;
  for (let count = 0; count < QUESTIONS; count++) {
    const asked = await ask(connected, REQUEST_KEY_SUBJECT, question, { timeoutMs: ANSWER_MS });
    if (typeof asked === "string") break;
    const answer = RequestKeyAnswer.parse(JSON.parse(asked.answer.string()));
    if (!("key" in answer)) return [OTHER_KEY];
    opened += 1;
  }
  return opened === 0 ? [] : [good(ABOUT, "hosts of actors have the key of this machine", WANTED)];
}

const OTHER_KEY: Finding = {
  level: "failure",
  about: ABOUT,
  found: "a host of actors cannot open what the key of this machine seals",
  wanted: WANTED,
  mend: "set TRUNKLINE_SECRETS_KEY to the same keys, the newest first, for both roles on every machine, and restart them",
};
