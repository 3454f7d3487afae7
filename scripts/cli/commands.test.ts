import { expect } from "chai";
import { trunkline } from "../testing/command-line.ts";
import { COMMANDS, commandList, helpOf } from "./commands.ts";

const WIDTH = 120;

describe("commands for apps", function () {
  this.timeout(60_000);

  for (const command of COMMANDS) {
    it(`${command.name} has a help text that fits a terminal`, () => {
      const text = helpOf(command);
      expect(text).to.match(new RegExp(`^Usage: trunkline ${command.name}`));
      for (const line of text.split("\n").slice(1)) expect(line.length, line).to.be.at.most(WIDTH);
      // Each option is in it.
      for (const [option] of command.usage.matchAll(/--[\w-]+/g)) {
        expect(text.slice(text.indexOf("\n")), option).to.include(option);
      }
    });
  }

  it("are listed with a line each", () => {
    const lines = commandList().split("\n");
    expect(lines).to.have.length(COMMANDS.length);
    for (const line of lines) expect(line.length).to.be.at.most(WIDTH);
  });

  it("show their help at any position of --help, without an app and a platform", async () => {
    for (const parameters of [
      ["deploy", "--help"],
      ["secret", "put", "NAME", "-h"],
    ]) {
      const { code, stdout, stderr } = await trunkline(parameters);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
      expect(stdout).to.match(/^Usage: trunkline (deploy|secret put) /);
    }
  });

  const mistakes: Record<string, string> = {
    "deploy --confg x": "Cannot run command: unknown option --confg; is --config meant?",
    "deploy --config": "Cannot run command: --config needs a value",
    "deploy --dry-run=yes": "Cannot run command: --dry-run takes no value",
    "deploy now": 'Cannot run command: unknown parameter "now"',
    "secret put": "Cannot run command: a parameter is missing",
    secret: 'Cannot run "secret": expected put, list, delete after secret',
    "deliveries burn": 'Cannot run "deliveries burn": expected list, show, replay after deliveries',
    deplyo: 'Cannot run "deplyo": no such command; is deploy meant?',
    "versions --app No":
      'Cannot use "No" as the name of an app: expected 1 to 63 lower-case letters',
    "rollback x": 'Cannot roll back to "x": expected the number of a version',
    "deliveries show C a 0":
      'Cannot use "0" as the id of a delivery: expected a whole number from 1',
    "deliveries list 1 a -a app": 'Cannot find agent "1 a": expected the name of a class',
  };
  for (const [typed, problem] of Object.entries(mistakes)) {
    it(`report the error in "${typed}"`, async () => {
      const { code, stdout, stderr } = await trunkline(typed.split(" "));
      expect({ code, stdout }).to.deep.equal({ code: 2, stdout: "" });
      expect(stderr.startsWith(problem), stderr).to.equal(true);
      expect(stderr).to.match(/--help (explains it|lists all commands)\n$/);
    });
  }
});
