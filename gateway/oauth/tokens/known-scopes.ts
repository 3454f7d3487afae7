/** Scopes as OAuth writes them, in one text. */
import { Scope } from "../../../schemas/oauth/scopes.ts";

/** Returns the scopes in the text that exist. */
export function knownScopes(text: string): Scope[] {
  return text.split(" ").flatMap((id) => {
    const read = Scope.safeParse(id);
    return read.success ? [read.data] : [];
  });
}
