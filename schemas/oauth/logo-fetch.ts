/** The task of fetching a logo of an OAuth client. Its key is the client that it is for. */
import { z } from "zod";
import { defineTasks } from "../contract.ts";

/** Media types of a copy. SVG is left out: a document from our own origin must not hold scripts. */
export const LOGO_TYPES = ["image/png", "image/jpeg", "image/webp"] as const;
export type LogoType = (typeof LOGO_TYPES)[number];

export const logoFetch = defineTasks({
  kind: "logo-fetch",
  lanes: ["fetch"],
  messages: {
    /** Answered by `fetched` to the client's logo. */
    fetch: { lane: "fetch", input: z.object({ uri: z.string(), attempt: z.int().min(1) }) },
  },
});
