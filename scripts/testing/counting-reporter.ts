/** A mocha reporter for run-tests: prints like "spec", and sends what it counted to the process that started mocha. */
import Mocha from "mocha";

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    runner.once("end", () => {
      const { passes, failures, pending } = this.stats;
      const counts: Counts = { passed: passes, failed: failures, skipped: pending };
      process.send?.(counts);
    });
  }
}
