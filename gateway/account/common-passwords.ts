/**
 * Rejects passwords that attackers try first (NIST SP 800-63B section 5.1.1.2): common passwords and the person's own
 * address.
 */

let common: Promise<ReadonlySet<string>> | undefined;

/**
 * Loads the list of about 49,000 common passwords, in lower case, when the first new password is checked. Most
 * gateways never need it.
 */
async function loadCommon(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import("@zxcvbn-ts/language-common");
  return new Set(dictionary["passwords-common"]);
}

export async function isCommonPassword(password: string, email: string): Promise<boolean> {
  const lower = password.toLowerCase();
  // Attackers try "password1" as well as "Password1!", so trailing characters that are neither letters nor digits are
  // ignored.
  const bare = lower.replace(/[^\p{L}\p{N}]+$/u, "");
  const [name] = email.toLowerCase().split("@");
  if (lower === email.toLowerCase() || bare === name) return true;
  if (new Set(lower).size === 1) return true;
  common ??= loadCommon();
  const known = await common;
  return known.has(lower) || known.has(bare);
}
