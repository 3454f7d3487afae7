/** Chooses what a token opens: for each part of the platform nothing, reading, or reading and writing. */
import { useId } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PermissionGroup } from "../lib/wire.ts";

const LEVELS = [
  ["", "Nothing"],
  ["read", "Read"],
  ["write", "Write"],
] as const;

interface PickerProps {
  groups: readonly PermissionGroup[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}

export function PermissionPicker({ groups, chosen, onChange }: PickerProps) {
  const parts = partsOf(groups);
  const everything = (level: string) => parts.map(({ part }) => `${part}.${level}`);
  return (
    <fieldset class="picker">
      <legend>Permissions</legend>
      <span class="quiet hint">Write includes read.</span>
      <p class="actions">
        <button type="button" class="small second" onClick={() => onChange(everything("read"))}>
          Read everything
        </button>
        <button type="button" class="small second" onClick={() => onChange(everything("write"))}>
          Everything
        </button>
        <button type="button" class="small second" onClick={() => onChange([])}>
          Nothing
        </button>
      </p>
      {parts.map(({ part, name }) => (
        <Part key={part} part={part} name={name} chosen={chosen} onChange={onChange} />
      ))}
    </fieldset>
  );
}

function Part({
  part,
  name,
  chosen,
  onChange,
}: { part: string; name: string } & Pick<PickerProps, "chosen" | "onChange">) {
  const { may } = useAccount();
  const id = useId();
  const level = chosen.includes(`${part}.write`)
    ? "write"
    : chosen.includes(`${part}.read`)
      ? "read"
      : "";
  const choose = (next: string) => {
    const others = chosen.filter((one) => !one.startsWith(`${part}.`));
    onChange(next === "" ? others : [...others, `${part}.${next}`]);
  };
  return (
    <fieldset class="part">
      <legend>{name}</legend>
      {LEVELS.map(([value, label]) => (
        <label key={value} class="choice">
          <input
            type="radio"
            name={id}
            checked={value === level}
            disabled={value !== "" && !may(`${part}.${value}`)}
            aria-label={`${name}: ${label}`}
            onChange={() => choose(value)}
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}

function partsOf(groups: readonly PermissionGroup[]): { part: string; name: string }[] {
  const reads = groups.filter(({ id }) => id.endsWith(".read"));
  return reads.map(({ id, name }) => ({
    part: id.replace(/\.read$/, ""),
    name: name.replace(/ Read$/, ""),
  }));
}
