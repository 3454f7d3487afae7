/** Pages of webhooks: events that an agent received, and webhooks that it sent. */
import type { Pages } from "../lib/router.ts";
import { DeliveriesPage, DeliveryPage } from "./deliveries-page.tsx";
import { EndpointsPage, TestPage } from "./endpoints-page.tsx";
import { SentPage, SentWebhookPage } from "./sent-page.tsx";

export const pages: Pages = {
  "": EndpointsPage,
  ":app/endpoints/:endpoint/test": TestPage,
  ":app/:className/:agent": DeliveriesPage,
  ":app/:className/:agent/sent": SentPage,
  ":app/:className/:agent/sent/:id": SentWebhookPage,
  ":app/:className/:agent/:id": DeliveryPage,
};
