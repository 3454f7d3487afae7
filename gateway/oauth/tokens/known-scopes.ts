/** Parses a list of scopes in the form of OAuth: one text, separated by spaces. */
import { Scope } from "../../../schemas/oauth/scopes.ts";

/** Returns the scopes in the text that exist. */
export function knownScopes(text: string): Scope[] {
  return text.split(" ").flatMap((id) => {
    const read = Scope.safeParse(id);
    return read.success ? [read.data] : [];
  });
}
