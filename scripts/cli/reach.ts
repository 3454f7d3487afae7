/** A `fetch` whose network errors are one line: the server that cannot be reached, and the reason. */

/** The platform could not be reached. A retry may succeed. */
export class Unreachable extends Error {}

export async function reach(url: string, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(url, { redirect: "manual", ...init });
  } catch (error) {
    const { origin } = new URL(url);
    throw new Unreachable(`Cannot reach ${origin}: ${reasonOf(error)}`, { cause: error });
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (code === "ECONNREFUSED") return "nobody listens there";
  if (code === "ENOTFOUND") return "there is no such host";
  if (error instanceof Error && error.name === "TimeoutError") return "no answer in time";
  return cause instanceof Error && cause.message !== "" ? cause.message : String(error);
}
