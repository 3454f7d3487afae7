/**
 * `node:async_hooks` for app code: only AsyncLocalStorage and AsyncResource, without access to the values of other
 * code.
 */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";

export { AsyncLocalStorage, AsyncResource };
export default { AsyncLocalStorage, AsyncResource };
