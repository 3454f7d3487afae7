/** Chooses a branch or a tag. */
import { useRest } from "../lib/use-rest.ts";
import type { WireRef } from "../lib/wire.ts";
import { type RepoPlace, shortHash, shortRef } from "./repo-place.ts";

/** As many as fit a menu; another ref is reached by its address. */
const REFS_MAX = 1_000;

export function useRefs(place: RepoPlace) {
  return useRest<WireRef[]>(place.rest(`/refs?limit=${REFS_MAX}`));
}

interface PickerProps {
  label?: string;
  refs: readonly WireRef[];
  value: string;
  onChange: (ref: string) => void;
}

export function RefPicker({ label = "Branch or tag", refs, value, onChange }: PickerProps) {
  const of = (prefix: string) => refs.filter(({ name }) => name.startsWith(prefix));
  const known = refs.some(({ name }) => name === value);
  return (
    <label class="ref-picker">
      <span class="hidden">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {!known && (
          <option value={value}>
            {/^[0-9a-f]{40}$/.test(value) ? shortHash(value) : shortRef(value)}
          </option>
        )}
        <Refs label="Branches" refs={of("refs/heads/")} />
        <Refs label="Tags" refs={of("refs/tags/")} />
      </select>
    </label>
  );
}

function Refs({ label, refs }: { label: string; refs: readonly WireRef[] }) {
  if (refs.length === 0) return null;
  return (
    <optgroup label={label}>
      {refs.map(({ name }) => (
        <option key={name} value={name}>
          {shortRef(name)}
        </option>
      ))}
    </optgroup>
  );
}
