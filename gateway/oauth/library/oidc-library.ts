/**
 * The parts of oidc-provider that this project uses, imported without its entry file. On a runtime that it does not
 * list, the entry file prints to the console, which would corrupt this program's log.
 */
export * as errors from "oidc-provider/lib/helpers/errors.js";
export * as interactionPolicy from "oidc-provider/lib/helpers/interaction_policy/index.js";
export { Provider } from "oidc-provider/lib/provider.js";
