/** The registration of an OAuth client (RFC 7591 section 2), and the rules between its fields. */
import { z } from "zod";
import type { DeepReadonly } from "../contract.ts";
import {
  clientUriFault,
  hasOwnScheme,
  nativeUriFault,
  originFault,
  redirectUriFault,
  webUriFault,
} from "./client-uris.ts";
import { ALL_SCOPES, NEVER_OPTIONAL, Scope } from "./scopes.ts";

const CLIENT_NAME_CHARS_MAX = 100;
/** Limits the redirect URIs or origins of one list. A client with several environments has about ten. */
export const CLIENT_URIS_MAX = 50;
/**
 * Limits the characters of one address. A longer address would not fit with the other parameters into the query of a
 * URL that common servers accept.
 */
export const CLIENT_URI_CHARS_MAX = 2_048;
/**
 * Limits the characters of one client's registration, so that all clients of an account fit into one answer of some
 * megabytes.
 */
export const CLIENT_CHARS_MAX = 32_000;

export const GrantType = z.enum(["authorization_code", "refresh_token"]);
export const AuthMethod = z.enum(["client_secret_basic", "client_secret_post", "none"]);

/**
 * Control characters, invisible characters such as direction marks, and the blank braille pattern. They could make a
 * name look like another name, or like an empty name.
 */
const UNSEEN = /[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800\ufff9-\ufffb]/u;

export const ClientName = z
  .string()
  .min(1)
  .max(CLIENT_NAME_CHARS_MAX)
  .refine((name) => name.trim() !== "" && !UNSEEN.test(name) && name.isWellFormed(), {
    error: "Expected a visible name without control or invisible characters",
  });

const Uri = z.string().min(1).max(CLIENT_URI_CHARS_MAX);
const uriWith = (faultOf: (uri: string) => string | undefined) =>
  Uri.superRefine((uri, context) => {
    const message = faultOf(uri);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });
const WebUri = uriWith(webUriFault);
const ClientUri = uriWith(clientUriFault);
const Origin = uriWith(originFault);

/**
 * Custom schemes are allowed here. Whether this client may use one depends on another field, which `settingsFaults`
 * checks.
 */
const RedirectUri = uriWith((uri) => redirectUriFault(uri, { isPublic: true }));

function distinct<T extends z.ZodType>(item: T, { min, max }: { min: number; max: number }) {
  return z
    .array(item)
    .min(min)
    .max(max)
    .refine((items) => new Set(items).size === items.length, { error: "Expected no duplicates" })
    .meta({ uniqueItems: true });
}

/** Fields that every client has. */
const required = {
  clientName: ClientName,
  grantTypes: distinct(GrantType, { min: 1, max: 2 }).refine(
    (types) => types.includes("authorization_code"),
    { error: 'Expected "authorization_code", with or without "refresh_token"' },
  ),
  responseTypes: z.array(z.literal("code")).length(1),
  redirectUris: distinct(RedirectUri, { min: 1, max: CLIENT_URIS_MAX }),
  scopes: distinct(Scope, { min: 1, max: ALL_SCOPES.length }),
  tokenEndpointAuthMethod: AuthMethod,
};

/** Lists that may be empty. */
const lists = {
  postLogoutRedirectUris: distinct(RedirectUri, { min: 0, max: CLIENT_URIS_MAX }),
  optionalScopes: distinct(Scope, { min: 0, max: ALL_SCOPES.length }),
  allowedCorsOrigins: distinct(Origin, { min: 0, max: CLIENT_URIS_MAX }),
};

/** Fields that a client may lack. */
const links = { logoUri: WebUri, policyUri: WebUri, tosUri: WebUri, clientUri: ClientUri };

/** The schema of each field. On the wire the names are in snake case. */
export const CLIENT_FIELDS = { required, lists, links };

export const ClientSettings = z.object({
  ...required,
  ...lists,
  ...z.object(links).partial().shape,
});
export type ClientSettings = z.infer<typeof ClientSettings>;

export const ClientSettingsPatch = z.object({
  ...z.object({ ...required, ...lists }).partial().shape,
  logoUri: WebUri.nullish(),
  policyUri: WebUri.nullish(),
  tosUri: WebUri.nullish(),
  clientUri: ClientUri.nullish(),
});
export type ClientSettingsPatch = z.infer<typeof ClientSettingsPatch>;

/**
 * The stored registration. It was validated when it was changed, so only the types of its fields are checked here.
 */
export const Registration = z.object({
  clientName: z.string(),
  grantTypes: z.array(GrantType),
  responseTypes: z.array(z.literal("code")),
  redirectUris: z.array(z.string()),
  postLogoutRedirectUris: z.array(z.string()),
  scopes: z.array(Scope),
  optionalScopes: z.array(Scope),
  tokenEndpointAuthMethod: AuthMethod,
  allowedCorsOrigins: z.array(z.string()),
  logoUri: z.string().optional(),
  policyUri: z.string().optional(),
  tosUri: z.string().optional(),
  clientUri: z.string().optional(),
});
export type Registration = DeepReadonly<z.infer<typeof Registration>>;

export const REGISTRATION_FIELDS = Registration.keyof().options;

/** Returns a field's name in the form that clients send. */
export const wireName = (field: string) =>
  field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

interface SettingsFault {
  /** The path of the field in the form that clients send. Empty if the fault concerns all fields together. */
  path: (string | number)[];
  /** Describes a valid value. */
  text: string;
}

type RedirectUris = Pick<Registration, "redirectUris" | "postLogoutRedirectUris">;

/** Returns whether the client has a custom scheme, and so is an application on a person's device. */
export const isNativeClient = ({ redirectUris, postLogoutRedirectUris }: RedirectUris) =>
  [...redirectUris, ...postLogoutRedirectUris].some(hasOwnScheme);

/** Returns the conflicts between fields that are valid individually. */
export function settingsFaults(settings: Registration): SettingsFault[] {
  const { scopes, optionalScopes, tokenEndpointAuthMethod: method } = settings;
  const isPublic = method === "none";
  const isNative = isNativeClient(settings);
  const uris = (["redirectUris", "postLogoutRedirectUris"] as const).flatMap((field) =>
    faultsOf(field, settings[field], (uri) => {
      return redirectUriFault(uri, { isPublic }) ?? (isNative ? nativeUriFault(uri) : undefined);
    }),
  );
  const optional = faultsOf("optionalScopes", optionalScopes, (scope) => {
    if (NEVER_OPTIONAL.includes(scope))
      return `"${scope}" cannot be optional: every authorization needs it`;
    return scopes.includes(scope)
      ? undefined
      : `"${scope}" is not in scopes: add it there, or remove it here`;
  });
  const faults = [...uris, ...optional];
  // Characters are counted as if they were bytes, because everything except the short name is ASCII.
  if (JSON.stringify(settings).length > CLIENT_CHARS_MAX) {
    faults.push({
      path: [],
      text: `Expected at most ${CLIENT_CHARS_MAX} characters in all fields together`,
    });
  }
  return faults;
}

function faultsOf<T>(
  field: keyof Registration,
  values: readonly T[],
  faultOf: (value: T) => string | undefined,
): SettingsFault[] {
  return values.flatMap((value, index) => {
    const text = faultOf(value);
    return text === undefined ? [] : [{ path: [wireName(field), index], text }];
  });
}
