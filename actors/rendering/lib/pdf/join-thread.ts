/** The thread of one PdfJoiner: it stores the parts as they arrive, and then joins them. */
import { parentPort } from "node:worker_threads";
import type { PdfMetadata } from "../../../../schemas/rendering/http/pdf-metadata.ts";
import { PdfJoin, type PdfPart } from "./join-pdfs.ts";
import type { PdfOverlay } from "./stamp-pages.ts";

export type JoinStep =
  | { step: "add"; part: PdfPart }
  | { step: "finish"; properties: PdfMetadata; overlays: readonly PdfOverlay[] };

const join = new PdfJoin();

parentPort?.on("message", async (message: JoinStep) => {
  if (message.step === "add") {
    parentPort?.postMessage(await join.add(message.part));
  } else {
    parentPort?.postMessage(await join.finish(message.properties, message.overlays));
  }
});
