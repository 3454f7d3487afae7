/** The parser of `docker compose` itself, which checks files against the Compose specification. */
import { goTool } from "./go-tool.ts";

/** Returns the program's path, or undefined where Go is missing. */
export const composeGo = (): Promise<string | undefined> =>
  goTool({
    name: "compose-go",
    version: "2.16.2",
    package: "github.com/compose-spec/compose-go/v2/cmd",
    folder: "composego",
  });
