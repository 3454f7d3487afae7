/** The cookies that a request sets in a page before the page loads. */
import { z } from "zod";
import { COOKIE_CHARS_MAX, COOKIES_MAX, URL_CHARS_MAX } from "../../limits.ts";

// Browsers drop cookies with control characters (RFC 6265bis, section 5.6). In a header, `;` would end a value and
// `=` would end a name.
const NAME = /^[^\p{Cc};=]*$/u;
const VALUE = /^[^\p{Cc};]*$/u;
const PATH = /^\/[^\p{Cc};]*$/u;

const Text = z.string().max(COOKIE_CHARS_MAX).regex(VALUE, {
  error: "Expected text without control characters and semicolons",
});

const Cookie = z
  .strictObject({
    name: z.string().max(COOKIE_CHARS_MAX).regex(NAME, {
      error: "Expected text without control characters, semicolons and equals signs",
    }),
    value: Text.meta({ secret: true }),
    url: z
      .string()
      .max(URL_CHARS_MAX)
      .refine((url) => /^https?:$/.test(URL.parse(url)?.protocol ?? ""), {
        error: "Expected an absolute URL that begins with http:// or https://",
      })
      .optional()
      .describe(
        "Address that gives the cookie its host, path and scheme; defaults to the page's address",
      ),
    domain: Text.min(1).optional(),
    path: z
      .string()
      .max(COOKIE_CHARS_MAX)
      .regex(PATH, {
        error: "Expected a path that begins with /, without control characters and semicolons",
      })
      .optional(),
    expires: z.number().min(-1).optional().describe("Seconds since 1970; -1 for a session cookie"),
    httpOnly: z.boolean().optional(),
    secure: z.boolean().optional(),
    sameSite: z.enum(["Strict", "Lax", "None"]).optional(),
    priority: z.enum(["Low", "Medium", "High"]).optional(),
    partitionKey: Text.optional().describe("Top-level site of a partitioned cookie"),
    sameParty: z
      .boolean()
      .optional()
      .describe("Accepted but has no effect: browsers no longer support it"),
    sourcePort: z.int().min(-1).max(65_535).optional(),
    sourceScheme: z.enum(["Unset", "NonSecure", "Secure"]).optional(),
  })
  .refine(({ name, value }) => name.length + value.length <= COOKIE_CHARS_MAX, {
    path: ["value"],
    error: `Expected at most ${COOKIE_CHARS_MAX} characters of name and value together`,
    when: ({ issues }) => issues.length === 0,
  })
  .refine(({ name, value }) => name + value !== "", {
    path: ["name"],
    error: "Expected a name or a value",
    when: ({ issues }) => issues.length === 0,
  })
  .meta({ title: "Cookie" });
export type Cookie = z.output<typeof Cookie>;

export const Cookies = z.array(Cookie).max(COOKIES_MAX);
