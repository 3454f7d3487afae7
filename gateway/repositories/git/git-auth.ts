/** Reads the token that a git client shows: as Bearer, or as the password of Basic with any user. */

/** Returns the token's text; undefined if the client shows none. */
export function shownToken(authorization: string | undefined): string | undefined {
  const [, scheme = "", value = ""] = /^(\S+) +(\S+) *$/.exec(authorization ?? "") ?? [];
  switch (scheme.toLowerCase()) {
    case "bearer":
      return value;
    case "basic": {
      const [user = "", ...others] = Buffer.from(value, "base64").toString("utf8").split(":");
      const password = others.join(":");
      const text = password === "" ? user : password;
      return text === "" ? undefined : text;
    }
    default:
      return undefined;
  }
}
