import { expect } from "chai";
import { pino } from "pino";
import { accountActor } from "../../actors/account/account/account.ts";
import { apiTokenActor } from "../../actors/account/api-token/api-token.ts";
import { APP_TOKEN_SUBJECT, AppTokenAnswer } from "../../schemas/apps/app-token.ts";
import { APP_TOKEN_CHARS_MAX } from "../../schemas/apps/limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { newToken } from "../account/api-token-text.ts";
import { TokenFinder } from "../oauth/tokens/token-finder.ts";
import { testCrawls } from "../testing/test-crawls.ts";
import { giveToken, openAccount } from "../testing/test-gateway.ts";
import { answerAppTokens } from "./app-tokens.ts";

/** `fails`: the error with which calls of actors fail. */
async function world({ fails }: { fails?: Error } = {}) {
  const actors = memoryActors({ actors: [accountActor, apiTokenActor] });
  const { live } = testCrawls();
  const own = await openAccount(actors, "Own");
  const other = await openAccount(actors, "Other");
  const answers = new Map<string, (payload: string) => string | Promise<string>>();
  const failing = { ...actors, call: () => Promise.reject(fails) } as unknown as typeof actors;
  const leave = answerAppTokens({
    tokens: new TokenFinder({ actors: fails ? failing : actors, live, now: () => Date.now() }),
    logger: pino({ level: "silent" }),
    answerOn(subject, answer) {
      answers.set(subject, answer);
      return () => answers.delete(subject);
    },
  });
  const ask = async (token: string, accountId = own) => {
    const answer = answers.get(APP_TOKEN_SUBJECT);
    if (!answer) throw new Error("nobody answers");
    return AppTokenAnswer.parse(JSON.parse(await answer(JSON.stringify({ accountId, token }))));
  };
  return { actors, own, other, ask, leave, answers };
}

describe("answerAppTokens()", () => {
  it("says what a token opens, and nothing for another account than the app's", async () => {
    const { actors, own, other, ask } = await world();
    const token = await giveToken(actors, other, ["artifacts.read"]);
    const [found, elsewhere] = [await ask(token, other), await ask(token, own)];
    const shared = { kind: "api", accountIds: [other], scopes: ["artifacts.read"] };
    const identity = (answer: AppTokenAnswer) => ("identity" in answer ? answer.identity : {});
    expect(identity(found)).to.deep.include({ ...shared, permissions: ["artifacts.read"] });
    expect(identity(elsewhere)).to.deep.include({ ...shared, permissions: [] });
    expect(JSON.stringify(found)).to.not.contain(token.slice(-20));
  });

  it("does not know texts that are no token, foreign tokens, and tokens with a wrong secret", async () => {
    const { actors, own, ask } = await world();
    const token = await giveToken(actors, own, ["apps.read"]);
    const forged = token.slice(0, -43) + newToken().text.slice(-43);
    for (const text of ["", "x", newToken().text, forged, "t".repeat(APP_TOKEN_CHARS_MAX)]) {
      expect(await ask(text)).to.deep.equal({ isUnknown: true });
    }
    const failed = await ask("t".repeat(APP_TOKEN_CHARS_MAX + 1)).catch(
      (error: Error) => error.name,
    );
    expect(failed).to.equal("ZodError");
  });

  it("says when it cannot say, and nothing once it was ended", async () => {
    for (const fails of [new ActorError("unavailable", "Cannot reach it"), new Error("a fault")]) {
      const { ask } = await world({ fails });
      expect(await ask(newToken().text)).to.deep.equal({ isUnavailable: true });
    }
    const { leave, answers } = await world();
    leave();
    expect(answers.size).to.equal(0);
  });
});
