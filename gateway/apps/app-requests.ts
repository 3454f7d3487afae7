/** Functions that HTTP requests and socket upgrades to an app share. */
import { ActorError } from "../../schemas/errors.ts";

/** Returns the path without the query. Throws `invalid_request` if it is not a path. */
export function pathOf(path: string): string {
  // Given as a relative URL with a base, a path that begins with two slashes would name a host. So the URL is built
  // as one text.
  const url = path.startsWith("/") ? URL.parse(`http://app.invalid${path}`) : null;
  if (url) return url.pathname;
  throw new ActorError("invalid_request", "Cannot accept path: expected one that begins with /");
}

/** The reached limit is included, because it is the platform's own and helps the caller that reached it. */
const failureOf = ({ details: { bound } }: ActorError) =>
  bound === undefined ? "the app's code failed" : `the app's process has ended: ${bound}`;

/** Hides errors that the app's code threw, including errors at its start. They are only for the app's own log. */
export function withoutInside(error: unknown): unknown {
  if (!(error instanceof ActorError)) return error;
  switch (error.code) {
    case "app_failed":
      return new ActorError(error.code, `Cannot answer: ${failureOf(error)}`);
    case "app_broken":
      return new ActorError(
        error.code,
        "Cannot answer: the app does not start; `trunkline tail` shows why",
      );
    default:
      return error;
  }
}
