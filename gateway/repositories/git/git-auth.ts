/** Reads what a git client shows to be let in: a token as Bearer, or as password of Basic with any user. */
import { repoTokenHash } from "../repo-token-text.ts";

/** The hash of the token, or undefined where none is shown. */
export function shownToken(authorization: string | undefined): string | undefined {
  const [, scheme = "", value = ""] = /^(\S+) +(\S+) *$/.exec(authorization ?? "") ?? [];
  switch (scheme.toLowerCase()) {
    case "bearer":
      return repoTokenHash(value);
    case "basic": {
      const [user = "", ...others] = Buffer.from(value, "base64").toString("utf8").split(":");
      const password = others.join(":");
      const text = password === "" ? user : password;
      return text === "" ? undefined : repoTokenHash(text);
    }
    default:
      return undefined;
  }
}
