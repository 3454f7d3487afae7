/** Parts that several forms use. */
import { type Html, html } from "./html.ts";
import type { Refused } from "./refused.ts";

/** Renders the refusal. Screen readers read it out immediately. */
export function refusalNote(refused: Refused | undefined): Html {
  return refused
    ? html`<p class="note bad" role="alert" id="refusal">${refused.message}</p>`
    : html``;
}

export interface Field {
  name: "email" | "password" | "current";
  label: string;
  type: "email" | "password";
  autocomplete: string;
  value?: string;
  hint?: string;
  refused?: Refused | undefined;
}

export function field({ name, label, type, autocomplete, value, hint, refused }: Field): Html {
  const isWrong = refused?.field === name;
  const described = [
    ...(isWrong ? ["refusal"] : []),
    ...(hint === undefined ? [] : [`${name}-hint`]),
  ];
  return html`<div class="field">
<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" required${
    value !== undefined && html` value="${value}"`
  }${isWrong && html` aria-invalid="true"`}${
    described.length > 0 && html` aria-describedby="${described.join(" ")}"`
  }>
${hint !== undefined && html`<span class="quiet" id="${name}-hint">${hint}</span>`}
</div>`;
}
