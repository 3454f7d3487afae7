import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  PUSH_HEAD_BYTES_MAX,
  PUSH_OPTION_CHARS_MAX,
  PUSH_OPTIONS_BYTES_MAX,
  PUSH_OPTIONS_MAX,
  REFS_MAX,
} from "../../../schemas/repositories/limits.ts";
import { commandsBytes } from "../../../schemas/repositories/repo.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { FLUSH, PktReader, pktLine } from "./pkt-line.ts";
import { REPORTED_COMMANDS_MAX, RefusedPush, readPush, SHALLOW_LINES_MAX } from "./read-push.ts";

const A = "a".repeat(40);
const command = (ref: string, capabilities = "") =>
  pktLine(`${ZERO_ID} ${A} ${ref}${capabilities}`);

function read(...lines: Buffer[]) {
  async function* source() {
    yield Buffer.concat(lines);
  }
  return readPush(new PktReader(source()));
}
const codeOf = async (...lines: Buffer[]) => (await refusalOf(read(...lines))).code;

describe("readPush()", () => {
  it("accepts REFS_MAX commands and refuses one more", async () => {
    const commands = (count: number) =>
      Array.from({ length: count }, (_, i) => command(`refs/heads/${i}`));
    const push = await read(...commands(REFS_MAX), FLUSH);
    expect(push?.commands).to.have.length(REFS_MAX);
    expect(await codeOf(...commands(REFS_MAX + 1), FLUSH)).to.equal("body_too_large");
  });

  it("refuses too many commands or options with all commands, so that a report can refuse each", async () => {
    const names = Array.from({ length: REFS_MAX + 2 }, (_, i) => `refs/heads/${i}`);
    const capable = "\0report-status side-band-64k push-options";
    const lines = names.map((name, i) => command(name, i === 0 ? capable : ""));
    const past = await refusalOf(read(...lines, FLUSH, pktLine("option"), FLUSH));
    expect(past).to.be.instanceOf(RefusedPush);
    const { push } = past as RefusedPush;
    expect(push.commands.map(({ ref }) => ref)).to.deep.equal(names);
    expect(push.capabilities.has("side-band-64k")).to.equal(true);
    const option = pktLine("o".repeat(PUSH_OPTION_CHARS_MAX + 1));
    const long = await refusalOf(read(command("refs/heads/a", capable), FLUSH, option, FLUSH));
    expect((long as RefusedPush).push.commands).to.have.length(1);
  });

  it("keeps REPORTED_COMMANDS_MAX commands of a refused push, and refuses one more without a report", async () => {
    const commands = (count: number) =>
      Array.from({ length: count }, (_, i) => command(`refs/heads/${i}`));
    const most = await refusalOf(read(...commands(REPORTED_COMMANDS_MAX), FLUSH));
    expect((most as RefusedPush).push.commands).to.have.length(REPORTED_COMMANDS_MAX);
    const past = await refusalOf(read(...commands(REPORTED_COMMANDS_MAX + 1), FLUSH));
    expect(past.code).to.equal("body_too_large");
    expect(past).to.not.be.instanceOf(RefusedPush);
  });

  it("names the limit of push options that is passed", async () => {
    const refusal = async (...options: string[]) => {
      const lines = options.map((option) => pktLine(option));
      const one = command("refs/heads/main", "\0push-options");
      return (await refusalOf(read(one, FLUSH, ...lines, FLUSH))).message;
    };
    expect(await refusal(...Array.from({ length: PUSH_OPTIONS_MAX + 1 }, () => "o"))).to.equal(
      `Cannot push: more than ${PUSH_OPTIONS_MAX} push options`,
    );
    expect(await refusal("o".repeat(PUSH_OPTION_CHARS_MAX + 1))).to.equal(
      `Cannot push: more than ${PUSH_OPTION_CHARS_MAX} characters in one push option`,
    );
    expect(await refusal(...Array.from({ length: 5 }, () => "o".repeat(1_000)))).to.equal(
      `Cannot push: more than ${PUSH_OPTIONS_BYTES_MAX} bytes of push options`,
    );
  });

  it("accepts SHALLOW_LINES_MAX shallow commits and refuses one more", async () => {
    const shallow = (count: number) =>
      Array.from({ length: count }, () => pktLine(`shallow ${A}\n`));
    const one = command("refs/heads/main");
    expect((await read(...shallow(SHALLOW_LINES_MAX), one, FLUSH))?.commands).to.have.length(1);
    const past = shallow(SHALLOW_LINES_MAX + 1);
    expect(await codeOf(...past, one, FLUSH)).to.equal("body_too_large");
  });

  it("accepts PUSH_OPTIONS_MAX options of PUSH_OPTION_CHARS_MAX characters and PUSH_OPTIONS_BYTES_MAX bytes, and refuses more", async () => {
    const one = command("refs/heads/main", "\0push-options");
    const lines = (options: string[]) =>
      [one, FLUSH, ...options.map((option) => pktLine(option)), FLUSH] as const;
    const some = (count: number, chars: number) =>
      Array.from({ length: count }, () => "o".repeat(chars));
    const full = some(3, PUSH_OPTION_CHARS_MAX);
    const left = PUSH_OPTIONS_BYTES_MAX - commandsBytes([...full, ""]);
    const most = [some(PUSH_OPTIONS_MAX, 10), [...full, "o".repeat(left)]];
    for (const options of most) {
      expect((await read(...lines(options)))?.options).to.deep.equal(options);
    }
    const past = [
      some(PUSH_OPTIONS_MAX + 1, 1),
      some(1, PUSH_OPTION_CHARS_MAX + 1),
      [...full, "o".repeat(left + 1)],
      [...full, "\u0001".repeat(left)],
    ];
    for (const options of past) {
      expect(await codeOf(...lines(options))).to.equal("body_too_large");
    }
  });

  it("accepts PUSH_HEAD_BYTES_MAX bytes of commands and refuses one more", async () => {
    const ref = (bytes: number) =>
      `refs/heads/${"x".repeat(bytes - 2 * 41 - "refs/heads/".length)}`;
    const each = 60_000;
    const count = Math.floor(PUSH_HEAD_BYTES_MAX / each);
    const lines = Array.from({ length: count }, () => command(ref(each)));
    const left = PUSH_HEAD_BYTES_MAX - count * each;
    expect((await read(...lines, command(ref(left)), FLUSH))?.commands).to.have.length(count + 1);
    const past = command(ref(left + 1));
    expect(await codeOf(...lines, past, FLUSH)).to.equal("body_too_large");
  });
});
