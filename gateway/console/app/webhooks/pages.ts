/** Pages of webhooks: those that came to an agent, and those that it sent. */
import type { Pages } from "../lib/pages.ts";
import { DeliveriesPage } from "./deliveries-page.tsx";
import { DeliveryPage } from "./delivery-page.tsx";
import { EndpointsPage } from "./endpoints-page.tsx";
import { SentPage } from "./sent-page.tsx";
import { SentWebhookPage } from "./sent-webhook-page.tsx";
import { TestPage } from "./test-page.tsx";

export const pages: Pages = {
  "": EndpointsPage,
  ":app/endpoints/:endpoint/test": TestPage,
  ":app/:className/:agent": DeliveriesPage,
  ":app/:className/:agent/sent": SentPage,
  ":app/:className/:agent/sent/:id": SentWebhookPage,
  ":app/:className/:agent/:id": DeliveryPage,
};
