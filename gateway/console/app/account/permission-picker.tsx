/** Lets a person choose the permissions of a token: for each part of the platform none, read, or read and write. */
import { useId } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PermissionGroup } from "../lib/wire.ts";
import { Button } from "../parts/button.tsx";

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
  const reads = groups.filter(({ id }) => id.endsWith(".read"));
  const parts = reads.map(({ id, name }) => [id.slice(0, -5), name.replace(/ Read$/, "")] as const);
  const everything = (level: string) => onChange(parts.map(([part]) => `${part}.${level}`));
  return (
    <fieldset class="picker">
      <legend>Permissions</legend>
      <span class="quiet hint">Write includes read.</span>
      <p class="actions">
        <Button onClick={() => everything("read")}>Read everything</Button>
        <Button onClick={() => everything("write")}>Everything</Button>
        <Button onClick={() => onChange([])}>Nothing</Button>
      </p>
      {parts.map(([part, name]) => (
        <Part key={part} {...{ part, name, chosen, onChange }} />
      ))}
    </fieldset>
  );
}

interface PartProps extends Omit<PickerProps, "groups"> {
  part: string;
  name: string;
}

function Part({ part, name, chosen, onChange }: PartProps) {
  const { may } = useAccount();
  const id = useId();
  const level = ["write", "read"].find((one) => chosen.includes(`${part}.${one}`)) ?? "";
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
