/** Values that several contracts share. */
import { z } from "zod";

/** 32 lower-case hex characters, the form of all generated ids. */
export const Id = z.string().regex(/^[0-9a-f]{32}$/, "Expected 32 lower-case hex characters");

/** A SHA-256, in hex. */
export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "Expected 64 lower-case hex characters");

export const EpochMs = z.int().min(0);

/** Converted to lower case, so that different spellings of one address belong to one user. */
export const Email = z.email("Expected an e-mail address").max(254).toLowerCase();

/** The number of times that a user's password was changed; absent before the first change. */
export const PasswordVersion = z.int().min(0).optional();
