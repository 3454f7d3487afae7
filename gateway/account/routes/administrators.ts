/** REST routes to list, add and remove the administrators of the installation. */
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import {
  AddAdministrator,
  AdministratorPath,
  RemovedAdministrator,
  WireAdministrator,
} from "../../../schemas/account/http/installation.ts";
import { INSTALLATION_KEY, installation } from "../../../schemas/account/installation.ts";
import { user } from "../../../schemas/account/user.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { INSTALLATION_TAG } from "../../http/installation-tag.ts";
import { defineRoute, type Route, type RouteRequest } from "../../http/route.ts";

const ADMINISTRATORS = "/installation/administrators";

const LIST_ADMINISTRATORS = {
  tag: INSTALLATION_TAG,
  method: "get",
  path: ADMINISTRATORS,
  id: "listAdministrators",
  summary:
    "List the installation's administrators (needs an administrator's session; tokens are refused)",
  isOfAdministrators: true,
  parameters: nothing,
  query: nothing,
  answer: { result: WireAdministrator.array() },
} as const;

const ADD_ADMINISTRATOR = {
  tag: INSTALLATION_TAG,
  method: "post",
  path: ADMINISTRATORS,
  id: "addAdministrator",
  summary: "Make a user an administrator (needs an administrator's session; tokens are refused)",
  isOfAdministrators: true,
  parameters: nothing,
  query: nothing,
  body: { schema: AddAdministrator, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["not_found", "limit_reached"],
  answer: { result: WireAdministrator },
} as const;

const REMOVE_ADMINISTRATOR = {
  tag: INSTALLATION_TAG,
  method: "delete",
  path: `${ADMINISTRATORS}/{user_id}`,
  id: "removeAdministrator",
  isRevocation: true,
  summary:
    "Remove an administrator, but not the last one (needs an administrator's session; tokens are refused)",
  isOfAdministrators: true,
  parameters: AdministratorPath,
  query: nothing,
  refusals: ["conflict"],
  answer: { result: RemovedAdministrator },
} as const;

/** The REST routes of the installation's administrators. */
export function administratorRoutes(actors: ActorClient): Route[] {
  return [
    defineRoute({
      ...LIST_ADMINISTRATORS,
      async handle() {
        const { administrators } = await actors.call(
          installation,
          INSTALLATION_KEY,
          "listAdministrators",
          {},
        );
        return {
          result: administrators.map(({ userId, email }) => ({ user_id: userId, email })),
        };
      },
    }),
    defineRoute({ ...ADD_ADMINISTRATOR, handle: addAdministrator(actors) }),
    defineRoute({ ...REMOVE_ADMINISTRATOR, handle: removeAdministrator(actors) }),
  ];
}

function addAdministrator(actors: ActorClient) {
  return async ({ body, caller, logger }: RouteRequest<unknown, unknown, AddAdministrator>) => {
    // Refuses an unknown address.
    const { id: userId, email } = await actors.call(user, body.email, "get", {});
    // The platform does not verify e-mail addresses, so another person may have signed up with this one. The request
    // must name the user's id too.
    if (userId !== body.user_id) throw notThePerson(email);
    await actors.call(installation, INSTALLATION_KEY, "addAdministrator", { userId, email });
    logger.info({ by: caller.userId, administrator: userId }, "administrator added");
    return { result: { user_id: userId, email } };
  };
}

function notThePerson(email: string): ActorError {
  const pointer = "/user_id";
  const message = `Cannot accept ${pointer}: ${email} has another id, expected the one that the console shows the person under Account, Sessions`;
  return new ActorError("invalid_request", message, { faults: [{ pointer, message }] });
}

function removeAdministrator(actors: ActorClient) {
  return async ({
    parameters,
    caller,
    logger,
  }: RouteRequest<z.output<typeof AdministratorPath>>) => {
    const { user_id: userId } = parameters;
    await actors.call(installation, INSTALLATION_KEY, "removeAdministrator", { userId });
    logger.info({ by: caller.userId, administrator: userId }, "administrator removed");
    return { result: { user_id: userId } };
  };
}
