/** The dependencies of pages. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { Link } from "../../pages/page.ts";
import type { Interactions } from "./interactions.ts";
import type { Visit, VisitParts } from "./visit.ts";

export interface PageParts extends VisitParts {
  actors: ActorClient;
  interactions: Interactions;
  link: Link;
  publicUrl: string;
  /** Resolves to the name of an OAuth client; undefined if the client does not exist. */
  clientNameOf(clientId: string): Promise<string | undefined>;
  /** `closed`: a new user needs an invitation. */
  signup: "open" | "closed";
  /** Shows that the authorization request has ended. */
  showOver(visit: Visit): void;
}
