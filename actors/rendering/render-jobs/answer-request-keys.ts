/** Unseals the keys of requests of rendering jobs and crawls for workers: see schemas/rendering/request-key.ts. */
import type { Logger } from "pino";
import { NO_APP } from "../../../schemas/apps/outgoing-webhook.ts";
import {
  REQUEST_KEY_QUEUE,
  REQUEST_KEY_SUBJECT,
  type RequestKeyAnswer,
  RequestKeyQuestion,
  requestKeyName,
} from "../../../schemas/rendering/request-key.ts";
import { answerOn } from "../../runtime/bus/answer.ts";
import type { Bus } from "../../runtime/bus/bus.ts";

interface RequestKeyParts {
  bus: Bus;
  logger: Logger;
  /** Unseals values with the platform's key of secrets. */
  secrets: {
    open(sealed: string, sealedFor: { accountId: string; app: string; name: string }): string;
  };
}

/** Answers requests for keys until the returned function is called. */
export function answerRequestKeys({ bus, logger, secrets }: RequestKeyParts): () => void {
  return answerOn({ bus, logger }, REQUEST_KEY_SUBJECT, answer, { queue: REQUEST_KEY_QUEUE });

  function answer(payload: string): string {
    return JSON.stringify(open(RequestKeyQuestion.parse(JSON.parse(payload))));
  }

  function open({ account, job, sealed }: RequestKeyQuestion): RequestKeyAnswer {
    const sealedFor = { accountId: account, app: NO_APP, name: requestKeyName(job) };
    try {
      return { key: secrets.open(sealed, sealedFor) };
    } catch (error) {
      logger.error({ err: error, account, job }, "request of a job not opened");
      return { isSealed: true };
    }
  }
}
