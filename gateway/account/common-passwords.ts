/** Passwords that attackers try first (NIST SP 800-63B section 5.1.1.2): common ones, and the person's own address. */

let common: Promise<ReadonlySet<string>> | undefined;

/** Some 49,000 entries in lower case. Loaded with the first new password: most gateways never need them. */
async function loadCommon(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import("@zxcvbn-ts/language-common");
  return new Set(dictionary["passwords-common"]);
}

export async function isCommonPassword(password: string, email: string): Promise<boolean> {
  const lower = password.toLowerCase();
  // Attackers try "password1" and "Password1!" alike.
  const bare = lower.replace(/[^\p{L}\p{N}]+$/u, "");
  const [name] = email.toLowerCase().split("@");
  if (lower === email.toLowerCase() || bare === name) return true;
  if (new Set(lower).size === 1) return true;
  common ??= loadCommon();
  const known = await common;
  return known.has(lower) || known.has(bare);
}
