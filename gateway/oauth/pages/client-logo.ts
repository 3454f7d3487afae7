/** Serves our copies of the logos of clients. No page loads a logo from another site. */
import { type RequestHandler, Router } from "express";
import { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { clientLogo } from "../../../schemas/oauth/client-logo.ts";
import { Id, Sha256 } from "../../../schemas/values.ts";
import { methodNotAllowed } from "../../http/middleware/method-not-allowed.ts";
import type { LiveClient } from "../clients/live-client.ts";
import { RecentLogos } from "./recent-logos.ts";

const LOGO_PATH = "/oauth2/logos";
const LogoPath = z.object({ clientId: Id, hash: Sha256 });

/** Resolves to the path of our copy of the client's logo; undefined while there is no copy. */
export async function logoPath(
  actors: ActorClient,
  clientId: string,
  { logoUri: uri }: Pick<LiveClient, "logoUri">,
): Promise<string | undefined> {
  if (uri === undefined) return undefined;
  const { hash } = await actors.call(clientLogo, clientId, "find", { uri });
  return hash === undefined ? undefined : `${LOGO_PATH}/${clientId}/${hash}`;
}

/** Serves a logo by the hash of its bytes. A new logo has a new path, so browsers may cache each path permanently. */
export function logoRouter(actors: ActorClient): Router {
  const path = `${LOGO_PATH}/:clientId/:hash`;
  return Router({ caseSensitive: true })
    .get(path, sendLogo(new RecentLogos(actors)))
    .all(path, methodNotAllowed(["GET"]));
}

function sendLogo(logos: RecentLogos): RequestHandler {
  return async ({ params: { clientId, hash } }, response, next) => {
    const asked = LogoPath.safeParse({ clientId, hash });
    if (!asked.success) return next("router");
    try {
      const { type, bytes } = await logos.read(asked.data.clientId, asked.data.hash);
      response.set({
        "Cache-Control": "public, max-age=31536000, immutable",
        // This policy also protects people who open the picture's address directly, outside a page.
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
        "Content-Type": type,
      });
      response.send(bytes);
    } catch (error) {
      if (error instanceof ActorError && error.code === "not_found") return next("router");
      throw error;
    }
  };
}
