/** For scripts/setup and the container image: bundles the console, unless the kept bundle is of the present sources. */
import { consoleBundle } from "../../gateway/console/bundle.ts";

await consoleBundle();
