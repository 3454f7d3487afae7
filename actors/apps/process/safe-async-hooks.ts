/** What code of apps finds as `node:async_hooks`: storage that follows calls, and no look at what others hold. */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";

export { AsyncLocalStorage, AsyncResource };
export default { AsyncLocalStorage, AsyncResource };
