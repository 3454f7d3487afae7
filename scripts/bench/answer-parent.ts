/** The other end of Child: reports that this process is ready, answers questions, and ends on request. */

export function answerParent(parts: {
  answer(question: unknown): Promise<unknown>;
  close(): Promise<void>;
}): void {
  process.on("message", (question) => {
    // A rejection ends this process, and with it the benchmark: there is nothing to go on with.
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
