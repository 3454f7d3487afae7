/** All checks of `trunkline admin doctor`, in the order in which they are printed. */
import { checkBus } from "./bus.ts";
import { checkCertificates } from "./certificates.ts";
import type { Check } from "./check.ts";
import { checkClock } from "./clock.ts";
import { checkDisk } from "./disk.ts";
import { checkDescriptors, checkKernel } from "./kernel.ts";
import { checkDns, checkEgress } from "./network.ts";
import { checkBrowser, checkGit } from "./programs.ts";
import { checkSecretsKey } from "./secrets-key.ts";
import { checkStreams } from "./streams.ts";

export const CHECKS: readonly Check[] = [
  { name: "bus", timeMs: 10_000, late: "failure", run: checkBus },
  { name: "streams", timeMs: 15_000, late: "warning", run: checkStreams },
  { name: "secrets", timeMs: 20_000, late: "warning", run: checkSecretsKey },
  { name: "clock", timeMs: 10_000, late: "warning", run: checkClock },
  { name: "disk", timeMs: 15_000, late: "failure", run: checkDisk },
  { name: "dns", timeMs: 10_000, late: "warning", run: checkDns },
  { name: "egress", timeMs: 12_000, late: "warning", run: checkEgress },
  { name: "browser", timeMs: 30_000, late: "failure", run: checkBrowser },
  { name: "git", timeMs: 15_000, late: "failure", run: checkGit },
  { name: "certificates", timeMs: 10_000, late: "warning", run: checkCertificates },
  { name: "descriptors", timeMs: 5_000, late: "warning", run: checkDescriptors },
  { name: "kernel", timeMs: 5_000, late: "warning", run: checkKernel },
];
