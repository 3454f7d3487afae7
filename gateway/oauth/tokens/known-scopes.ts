/** Scopes as OAuth writes them, in one text. */
import { Scope } from "../../../schemas/oauth/scopes.ts";

/** Those of a text that there are. */
export function knownScopes(text: string): Scope[] {
  return text.split(" ").flatMap((id) => {
    const read = Scope.safeParse(id);
    return read.success ? [read.data] : [];
  });
}
