/** Matches the path of a request with the path of a declared endpoint, in which `:entity` may stand for a segment. */

/** A slash at the end of the path is ignored. */
export const stepsOf = (path: string) => path.replace(/(.)\/$/, "$1").split("/");

/** Returns the decoded steps of a request's path; undefined for a step that cannot be decoded. */
export const decodedSteps = (path: string) => stepsOf(path).map(decoded);

/**
 * Returns the step in the place of `:entity`, if the pattern has this step. Returns false if the steps do not match
 * the pattern.
 */
export function entityOfPath(
  pattern: readonly string[],
  steps: readonly (string | undefined)[],
): string | undefined | false {
  if (steps.length !== pattern.length) return false;
  let entity: string | undefined;
  for (const [index, step] of pattern.entries()) {
    const found = steps[index];
    if (found === undefined) return false;
    if (step === ":entity" && found !== "") entity = found;
    else if (step !== found) return false;
  }
  return entity;
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step);
  } catch {
    return undefined; // It is no path of anybody.
  }
}
