/** A worker that does echo tasks. A test can observe and delay its tasks. */
import { defineWorker, type TaskContext } from "../../actors/runtime/workers/define-worker.ts";
import { type Envelope, envelope } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { echo } from "./echo.ts";
import { probe } from "./probe.ts";

export interface EchoOrders {
  slots?: Record<string, number>;
  /** Called at the start of each task. The task waits for the returned promise. */
  before?(text: string, context: TaskContext): Promise<void> | void;
  /** Returns the messages that each `drawl` tells actors at its end. */
  tells?(): Envelope[];
  /** Called with the number of a reply's bytes that the reader has requested so far. */
  made?(bytes: number): void;
}

export function echoWorker({ slots = { fast: 2, slow: 1 }, before, tells, made }: EchoOrders = {}) {
  return defineWorker(echo, {
    slots,
    handlers: {
      async say({ text, bytes, pieceBytes }, context) {
        await before?.(text, context);
        return {
          reply: { text, attempt: context.attempt },
          chunks: pieces(bytes, pieceBytes, made),
        };
      },
      async drawl({ text }, context) {
        await before?.(text, context);
        return { reply: { text, attempt: context.attempt }, tell: tells?.() ?? [] };
      },
      async tell({ text, failing }, context) {
        await before?.(text, context);
        if (failing < 0) throw new ActorError("conflict", "Cannot tell: refused as asked");
        if (context.attempt <= failing) throw new Error("failed as asked");
        return { send: [envelope(probe, context.key, "echoed", { text })] };
      },
    },
    failures: {
      say: () => [],
      drawl: () => [],
      tell: ({ text }, { code }, { key }) => [envelope(probe, key, "echoFailed", { text, code })],
    },
  });
}

/** Returns bytes that depend on their offset, so that a test detects a missing or repeated piece. */
export function patternAt(offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i++) {
    const place = offset + i;
    bytes[i] = (place ^ (place >>> 8) ^ (place >>> 16)) & 0xff;
  }
  return bytes;
}

async function* pieces(
  total: number,
  size: number,
  made: EchoOrders["made"],
): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < total; offset += size) {
    made?.(Math.min(offset + size, total));
    yield patternAt(offset, Math.min(size, total - offset));
  }
}
