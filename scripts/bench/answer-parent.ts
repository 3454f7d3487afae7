/**
 * The counterpart of the class Child in a started process: reports that the process is ready, answers questions, and
 * ends on request.
 */

export function answerParent(parts: {
  answer(question: unknown): Promise<unknown>;
  close(): Promise<void>;
}): void {
  process.on("message", (question) => {
    // An unhandled rejection ends this process and the benchmark, which is intended: the benchmark cannot continue.
    void parts.answer(question).then((answer) => process.send?.(answer));
  });
  let closing = false;
  const close = () => {
    if (closing) return;
    closing = true;
    void parts.close().then(() => process.exit());
  };
  process.once("SIGTERM", close);
  process.once("disconnect", close);
  process.send?.("ready");
}
