/** Chooses when a token expires. */
import { SelectField } from "../parts/form.tsx";

const DAY_MS = 86_400_000;
const CHOICES = [
  ["", "Never"],
  ["1", "In 1 day"],
  ["7", "In 7 days"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In 1 year"],
] as const;

/** `days` is empty for never. */
export function ExpiryField({
  days,
  onChange,
}: {
  days: string;
  onChange: (days: string) => void;
}) {
  return (
    <SelectField
      label="Expires"
      pointer="/expires_on"
      value={days}
      onChange={onChange}
      options={CHOICES.map(([value, label]) => ({ value, label }))}
    />
  );
}

export const expiryOf = (days: string) =>
  days === "" ? {} : { expires_on: new Date(Date.now() + Number(days) * DAY_MS).toISOString() };
