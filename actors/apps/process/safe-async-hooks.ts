/** `node:async_hooks` for app code: storage that follows calls, without access to what other code holds. */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";

export { AsyncLocalStorage, AsyncResource };
export default { AsyncLocalStorage, AsyncResource };
