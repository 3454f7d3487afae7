/** The webhook of a job, as the request specifies it. */
import { z } from "zod";
import { OutgoingUrl } from "../../apps/outgoing-webhook.ts";
import { shapedLike } from "../../http/shaped-like.ts";
import { JOB_WEBHOOK_SECRET_CHARS_MAX, JOB_WEBHOOK_URL_CHARS_MAX } from "../limits.ts";

export const JobWebhook = z
  .strictObject(
    {
      url: OutgoingUrl.max(JOB_WEBHOOK_URL_CHARS_MAX).describe("An http:// or https:// address"),
      secret: z
        .string()
        .min(1)
        .max(JOB_WEBHOOK_SECRET_CHARS_MAX)
        .meta({ secret: true })
        .describe(
          "The key that signs the webhook (Standard Webhooks): `whsec_` and base64, or any text",
        ),
    },
    { error: shapedLike({ url: "https://example.com/hook", secret: "whsec_…" }) },
  )
  .meta({ title: "JobWebhook" });
export type JobWebhook = z.output<typeof JobWebhook>;
