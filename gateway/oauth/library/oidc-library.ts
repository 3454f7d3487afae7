/**
 * What we use of oidc-provider, without its entry file: that one prints to the console when the runtime is none of the
 * releases it names, and what this program prints is its log.
 */
export * as errors from "oidc-provider/lib/helpers/errors.js";
export * as interactionPolicy from "oidc-provider/lib/helpers/interaction_policy/index.js";
export { Provider } from "oidc-provider/lib/provider.js";
