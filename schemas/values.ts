/** Values that several contracts share. */
import { z } from "zod";

/** 32 lower-case hex characters: what every made id looks like. */
export const Id = z.string().regex(/^[0-9a-f]{32}$/, "Expected 32 lower-case hex characters");

/** A SHA-256, in hex. */
export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "Expected 64 lower-case hex characters");

export const EpochMs = z.int().min(0);

/** Lower case, so that one address is one user. */
export const Email = z.email("Expected an e-mail address").max(254).toLowerCase();

/** Counts the times a user's password was changed; absent before the first. */
export const PasswordVersion = z.int().min(0).optional();
