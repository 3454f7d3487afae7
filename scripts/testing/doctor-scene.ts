/** Runs `trunkline admin doctor` for tests, in a process of its own. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type Finding, LEVELS, type Level } from "../admin/doctor/check.ts";
import { type CommandEnd, runCommand } from "./command-line.ts";

const MAIN = join(import.meta.dirname, "../trunkline.ts");

interface DoctorReport {
  status: Level;
  version: string;
  findings: Finding[];
}

/** Runs the doctor with its own data folder. */
export class DoctorScene implements AsyncDisposable {
  readonly folder: string;

  static async make(): Promise<DoctorScene> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-doctor-"));
    await chmod(folder, 0o755);
    return new DoctorScene(folder);
  }

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Runs the doctor as an operator does. `wrap` is a program with arguments that starts the doctor. */
  run(
    parameters: string[],
    environment: NodeJS.ProcessEnv = {},
    wrap: string[] = [],
  ): Promise<CommandEnd> {
    const [program = "", ...rest] = [...wrap, process.execPath, MAIN, "admin", "doctor"];
    const own = { TRUNKLINE_DATA: this.folder, ...environment };
    return runCommand(program, [...rest, ...parameters], own);
  }

  /**
   * Returns the doctor's report. Asserts that the exit status matches the worst finding, and that each finding that
   * is not good names a remedy.
   */
  async report(...[parameters, ...how]: Parameters<DoctorScene["run"]>): Promise<DoctorReport> {
    const end = await this.run(["--json", ...parameters], ...how);
    const report = reportOf(end);
    expect(end.code, end.stderr).to.equal(LEVELS.indexOf(report.status));
    for (const { level, wanted, mend } of report.findings) {
      if (level === "good") continue;
      expect(wanted).to.not.equal("");
      expect(mend).to.be.a("string").and.not.equal("");
    }
    return report;
  }

  /** Returns the first finding of the worst level. */
  async finding(...run: Parameters<DoctorScene["run"]>): Promise<Finding> {
    const { status, findings } = await this.report(...run);
    const worst = findings.find(({ level }) => level === status);
    if (worst === undefined) throw new Error("Cannot find a finding");
    return worst;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

function reportOf({ stdout, stderr }: CommandEnd): DoctorReport {
  try {
    return JSON.parse(stdout);
  } catch (error) {
    throw new Error(`Cannot read the report: ${stdout}${stderr}`, { cause: error });
  }
}
