import { expect } from "chai";
import {
  OUTGOING_PAUSES_MS,
  OUTGOING_TRIES_MAX,
} from "../../actors/apps/outgoing-webhook/tries.ts";
import { AppConfig } from "./app-config.ts";
import { EVENT_IDS_KEPT_MS, FORM_FIELDS_MAX, WEBHOOK_BODY_BYTES_MAX } from "./limits.ts";

/** The numbers that the documentation promises to users. Other tests use the names of the limits. */
describe("limits of webhooks", () => {
  it("events have up to 5 MiB, forms up to 1,000 fields; events are deduplicated for 7 days, and kept for 30 days or up to 10,000", () => {
    expect(WEBHOOK_BODY_BYTES_MAX).to.equal(5_242_880);
    expect(FORM_FIELDS_MAX).to.equal(1_000);
    expect(EVENT_IDS_KEPT_MS).to.equal(604_800_000);
    const { deliveries } = AppConfig.parse({ name: "a", compatibility_date: "2026-11-20" });
    expect(deliveries).to.deep.equal({ keep_days: 30, keep_count: 10_000 });
  });

  it("webhooks are sent at once, and retried after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h and 10 h", () => {
    const [s, m, h] = [1_000, 60_000, 3_600_000];
    const pauses = [5 * s, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 10 * h];
    expect(OUTGOING_PAUSES_MS).to.deep.equal(pauses);
    expect(OUTGOING_TRIES_MAX).to.equal(8);
  });
});
