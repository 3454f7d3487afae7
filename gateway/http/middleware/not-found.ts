/** Answers paths that do not exist. */
import type { RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";

export const notFound: RequestHandler = () => {
  throw new ActorError("not_found", "Cannot find path: it is unknown, see /v4/openapi.json");
};
