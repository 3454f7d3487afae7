import { expect } from "chai";
import type { EntryRequest } from "../../schemas/apps/agent.ts";
import { type AnswerBelow, BegunRequests } from "./begun-requests.ts";

const POST = { method: "POST", url: "http://app/pay", headers: [] };

describe("BegunRequests", () => {
  function permits() {
    let answer: Parameters<AnswerBelow>[1] = () => {};
    const begun = new BegunRequests((_name, given) => {
      answer = given;
    });
    /** Requests a permit as a host does. `run` names the run. */
    const ask = ({ permit }: EntryRequest, run: string) => {
      let heard = "";
      answer({
        subject: permit?.subject ?? "",
        string: () => run,
        respond: (bytes) => {
          heard = Buffer.from(bytes).toString();
        },
      });
      return heard;
    };
    return { begun, ask };
  }

  it("permits one run of a request, as often as it asks, and no other", async () => {
    const { begun, ask } = permits();
    const heard = await begun.run(POST, async (request) =>
      ["first", "first", "second", "first"].map((run) => ask(request, run)),
    );
    expect(heard).to.deep.equal(["permitted", "permitted", "refused", "permitted"]);
  });

  it("permits no run when the request is over, nor one of a request that it does not know", async () => {
    const { begun, ask } = permits();
    const over = await begun.run(POST, async (request) => request);
    expect(ask(over, "late")).to.equal("refused");
    expect(ask({ ...POST, permit: { subject: "begun.other.1" } }, "any")).to.equal("refused");
  });

  it("gives each request its own permit, and none to a safe one", async () => {
    const { begun, ask } = permits();
    await begun.run(POST, (one) =>
      begun.run(POST, async (other) => {
        expect([ask(one, "a"), ask(other, "b")]).to.deep.equal(["permitted", "permitted"]);
      }),
    );
    const safe = await begun.run({ ...POST, method: "GET" }, async (request) => request);
    expect(safe.permit).to.equal(undefined);
  });
});
