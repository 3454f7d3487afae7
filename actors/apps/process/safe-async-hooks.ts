/** `node:async_hooks` for app code: AsyncLocalStorage and AsyncResource, without access to other code's values. */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";

export { AsyncLocalStorage, AsyncResource };
export default { AsyncLocalStorage, AsyncResource };
