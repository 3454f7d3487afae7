/**
 * Writes the part of nats-server's configuration with the accounts: the users of the bus, their public keys and their
 * permissions.
 */
import { type Permissions, readPermissions } from "./permissions.ts";
import type { PublicKeys } from "./seeds.ts";
import { BUS_USERS } from "./users.ts";

/** The name of the configuration file that a server includes. */
export const SERVER_PART = "bus-users.conf";

/** Limits a user's replies to a request: how many, and how long after the request. The longest request waits 60 s. */
const ANSWERS = '{ max: 1, expires: "2m" }';

/** Returns the configuration. `others` are configuration lines of further users. */
export function serverPart(publicKeys: PublicKeys, others: readonly string[] = []): string {
  const users = BUS_USERS.map((name) => {
    const permissions = name === "admin" ? "" : `, permissions: ${permissionsText(name)}`;
    return `      # ${name}\n      { nkey: ${publicKeys[name]}${permissions} }`;
  });
  const all = [...users, ...others.map((line) => `      ${line}`)];
  return `# The users of the bus and their permissions. trunkline admin bus-credentials makes this file: do not change it.
accounts {
  TRUNKLINE {
    jetstream: enabled
    users: [
${all.join("\n")}
    ]
  }
  SYS {
    users: [{ user: system, password: $TRUNKLINE_NATS_SYSTEM_PASSWORD }]
  }
}
system_account: SYS
`;
}

function permissionsText(name: (typeof BUS_USERS)[number]): string {
  const { publish, subscribe, answers }: Permissions = readPermissions(name);
  const parts = [
    `publish: { allow: ${list(publish.allow)}, deny: ${list(publish.deny)} }`,
    `subscribe: { allow: ${list(subscribe.allow)} }`,
    ...(answers ? [`allow_responses: ${ANSWERS}`] : []),
  ];
  return `{\n        ${parts.join("\n        ")}\n      }`;
}

/** Quotes each subject, because an unquoted `$` begins a variable. */
const list = (subjects: readonly string[]) =>
  `[${subjects.map((subject) => JSON.stringify(subject)).join(", ")}]`;
