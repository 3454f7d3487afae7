/**
 * The environment of a page: its place, language, colour scheme and device. Also the actions that are performed after
 * the page has loaded.
 */
import { z } from "zod";
import { shapedLike } from "../../http/shaped-like.ts";
import { SELECTOR_CHARS_MAX, WAIT_TIMEOUT_MS_MAX } from "../../limits.ts";
import { ACTION_MS, ACTION_TEXT_CHARS_MAX, ACTIONS_MAX, CLIP_PX_MAX } from "../limits.ts";

const NAME_CHARS_MAX = 64;

const Timezone = z.string().max(NAME_CHARS_MAX).refine(isTimezone, {
  error: "Expected a time zone of the IANA database, as in Europe/Berlin",
});
const Locale = z.string().max(NAME_CHARS_MAX).refine(isLocale, {
  error: "Expected a language tag of BCP 47, as in de-CH",
});

const Selector = z.string().min(1).max(SELECTOR_CHARS_MAX).describe("CSS selector");
const Position = z.number().min(0).max(CLIP_PX_MAX);
const timeout = z
  .int()
  .min(1)
  .max(WAIT_TIMEOUT_MS_MAX)
  .default(ACTION_MS)
  .describe("Time limit of the action in milliseconds, including the wait for its element");

const PageAction = z.discriminatedUnion(
  "type",
  [
    z
      .strictObject({
        type: z.literal("click"),
        selector: Selector.optional(),
        x: Position.optional(),
        y: Position.optional(),
        timeout,
      })
      .meta({ title: "ClickAction" }),
    z
      .strictObject({
        type: z.literal("type"),
        selector: Selector,
        text: z.string().max(ACTION_TEXT_CHARS_MAX),
        timeout,
      })
      .meta({ title: "TypeAction" }),
    z
      .strictObject({
        type: z.literal("press"),
        key: z
          .string()
          .min(1)
          .max(NAME_CHARS_MAX)
          .describe("A key by its name in Puppeteer, for example Enter"),
        selector: Selector.optional(),
        timeout,
      })
      .meta({ title: "PressAction" }),
    z
      .strictObject({
        type: z.literal("scroll"),
        selector: Selector.optional(),
        x: Position.optional(),
        y: Position.optional(),
        timeout,
      })
      .meta({ title: "ScrollAction" }),
    z
      .strictObject({
        type: z.literal("select"),
        selector: Selector,
        value: z.string().max(ACTION_TEXT_CHARS_MAX),
        timeout,
      })
      .meta({ title: "SelectAction" }),
    z
      .strictObject({ type: z.literal("waitForSelector"), selector: Selector, timeout })
      .meta({ title: "WaitForSelectorAction" }),
    z
      .strictObject({
        type: z.literal("waitForTimeout"),
        timeout: timeout.describe("Milliseconds to wait"),
      })
      .meta({ title: "WaitForTimeoutAction" }),
  ],
  { error: shapedLike({ type: "click", selector: "#more" }) },
);
export type PageAction = z.output<typeof PageAction>;

const CheckedAction = PageAction.meta({ title: "PageAction" }).superRefine((action, context) => {
  if (action.type !== "click" && action.type !== "scroll") return;
  const { type, selector, x, y } = action;
  const places = [selector !== undefined, x !== undefined || y !== undefined];
  const isPoint = type === "scroll" || (x === undefined) === (y === undefined);
  if (places[0] !== places[1] && isPoint) return;
  const message = `Expected either selector or ${type === "click" ? "x and y" : "x, y or both"}`;
  context.addIssue({ code: "custom", path: ["selector"], message });
});

/** The fields, to be spread into the strict object of an endpoint. */
export const pageWorldFields = {
  timezone: Timezone.optional().describe("Time zone of the page, for example Europe/Berlin"),
  locale: Locale.optional().describe(
    "Language of the browser, in scripts and in the Accept-Language field, as in de-CH",
  ),
  geolocation: z
    .strictObject(
      {
        latitude: z.number().min(-90).max(90),
        longitude: z.number().min(-180).max(180),
        accuracy: z.number().min(0).max(100_000_000).default(0).describe("Accuracy in metres"),
      },
      { error: shapedLike({ latitude: 47.37, longitude: 8.54 }) },
    )
    .optional()
    .describe("The position that the page gets, on secure origins only, as in every browser"),
  colorScheme: z
    .enum(["light", "dark"])
    .optional()
    .describe("Value of the CSS feature prefers-color-scheme"),
  reducedMotion: z
    .enum(["reduce", "no-preference"])
    .optional()
    .describe("Value of the CSS feature prefers-reduced-motion"),
  device: z
    .string()
    .min(1)
    .max(NAME_CHARS_MAX)
    .optional()
    .describe(
      "Preset of the driver, as in iPhone 15 Pro: its viewport and user agent, where the request has none",
    ),
  actions: z
    .array(CheckedAction)
    .max(ACTIONS_MAX)
    .optional()
    .describe("Actions that run one after the other when the page is ready, before the capture"),
};

function isTimezone(name: string): boolean {
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

function isLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1;
  } catch {
    return false;
  }
}
