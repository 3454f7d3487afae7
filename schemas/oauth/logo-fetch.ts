/** The task that fetches the logo of an OAuth client. Its key is the client_id. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";

/**
 * Media types of logos that are copied. SVG is excluded, because an SVG document from our origin could contain
 * scripts.
 */
export const LOGO_TYPES = ["image/png", "image/jpeg", "image/webp"] as const;
export type LogoType = (typeof LOGO_TYPES)[number];

export const logoFetch = defineTasks({
  kind: "logo-fetch",
  lanes: ["fetch"],
  messages: {
    /** The worker sends the result as `fetched` to the actor of the client's logo. */
    fetch: { lane: "fetch", input: z.object({ uri: z.string(), attempt: z.int().min(1) }) },
  },
});
