import { createHash } from "node:crypto";
import { expect } from "chai";
import { clientLogoActor } from "../../../actors/oauth/client-logo/client-logo.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { LOGO_KEPT_MS, LOGOS_KEPT_MAX, RecentLogos } from "./recent-logos.ts";

const uri = "https://logos.example.com/logo.png";
const BYTES = Buffer.from("\x89PNG\r\n\x1a\n and more", "latin1");
const hash = createHash("sha256").update(BYTES).digest("hex");
const idOf = (number: number) => number.toString(16).padStart(32, "0");

describe("RecentLogos", () => {
  let now: number;
  let reads: number;
  let logos: RecentLogos;
  beforeEach(async () => {
    [now, reads] = [1_000, 0];
    const actors = memoryActors({ actors: [clientLogoActor] });
    const logo = { type: "image/png" as const, hash, base64: BYTES.toString("base64") };
    for (let number = 0; number <= LOGOS_KEPT_MAX; number += 1) {
      await actors.send(clientLogo, idOf(number), "follow", { uri });
      await actors.settled();
      await actors.send(clientLogo, idOf(number), "fetched", { uri, attempt: 1, logo });
    }
    await actors.settled();
    const counting = {
      ...actors,
      call(...asked: Parameters<ActorClient["call"]>) {
        reads += 1;
        return actors.call(...asked);
      },
    } as ActorClient;
    logos = new RecentLogos(counting, () => now);
  });

  it("read() calls the actor one time for requests at the same time, and for LOGO_KEPT_MS", async () => {
    const all = await Promise.all([1, 2, 3].map(() => logos.read(idOf(0), hash)));
    for (const { type, bytes } of all) expect([type, bytes]).to.deep.equal(["image/png", BYTES]);
    now += LOGO_KEPT_MS - 1;
    await logos.read(idOf(0), hash);
    expect(reads).to.equal(1);
    now += 1;
    await logos.read(idOf(0), hash);
    expect(reads).to.equal(2);
  });

  it("read() caches LOGOS_KEPT_MAX logos, and drops the oldest for one more", async () => {
    for (let number = 0; number < LOGOS_KEPT_MAX; number += 1) await logos.read(idOf(number), hash);
    await logos.read(idOf(0), hash);
    expect(reads).to.equal(LOGOS_KEPT_MAX);
    await logos.read(idOf(LOGOS_KEPT_MAX), hash);
    await logos.read(idOf(1), hash);
    expect(reads).to.equal(LOGOS_KEPT_MAX + 1);
    await logos.read(idOf(0), hash);
    expect(reads).to.equal(LOGOS_KEPT_MAX + 2);
  });

  it("read() caches no refusal", async () => {
    for (const _ of [1, 2]) {
      const refusal = await refusalOf(logos.read(idOf(0), "0".repeat(64)));
      expect(refusal.code).to.equal("not_found");
    }
    expect(reads).to.equal(2);
  });
});
