/**
 * Reads the token of a git client: a Bearer token, or the password of Basic authentication with any user name. If the
 * password is empty, the user name is the token.
 */

interface ShownToken {
  text: string;
  /** The user name beside the token. Clients choose it freely, so it proves nothing. */
  user?: string;
}

/** Returns undefined if the client shows no token. */
export function shownToken(authorization: string | undefined): ShownToken | undefined {
  const [, scheme = "", value = ""] = /^(\S+) +(\S+) *$/.exec(authorization ?? "") ?? [];
  switch (scheme.toLowerCase()) {
    case "bearer":
      return { text: value };
    case "basic": {
      const [user = "", ...others] = Buffer.from(value, "base64").toString("utf8").split(":");
      const password = others.join(":");
      if (password !== "") return { text: password, ...(user !== "" && { user }) };
      return user === "" ? undefined : { text: user };
    }
    default:
      return undefined;
  }
}
