/** Types of single files of oidc-provider. The package has types for its entry file only. */
declare module "oidc-provider/lib/provider.js" {
  export { Provider } from "oidc-provider";
}
declare module "oidc-provider/lib/helpers/errors.js" {
  import { errors } from "oidc-provider";
  export import AccessDenied = errors.AccessDenied;
  export import OIDCProviderError = errors.OIDCProviderError;
  export import InvalidGrant = errors.InvalidGrant;
  export import InvalidRedirectUri = errors.InvalidRedirectUri;
  export import InvalidRequest = errors.InvalidRequest;
  export import InvalidScope = errors.InvalidScope;
  export import SessionNotFound = errors.SessionNotFound;
}
declare module "oidc-provider/lib/helpers/interaction_policy/index.js" {
  import { interactionPolicy } from "oidc-provider";
  export import base = interactionPolicy.base;
  export import Check = interactionPolicy.Check;
}
