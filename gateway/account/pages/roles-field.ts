/** The form field for roles, each with its description. */
import { ALL_ROLES, HIGHEST_ROLE, ROLES, type Role } from "../../../schemas/account/permissions.ts";
import { type Html, html } from "../../pages/html.ts";

export const rolesText = (roles: readonly Role[]) => roles.join(", ");

/**
 * Returns the field. `givers` are the roles of the person who fills in the form: only a Super Administrator can give
 * that role to others.
 */
export function rolesField(ticked: readonly Role[], givers: readonly Role[]): Html {
  return html`<fieldset>
<legend>Roles</legend>
${ALL_ROLES.map((role) => item(role, { isTicked: ticked.includes(role), givers }))}
</fieldset>`;
}

function item(
  role: Role,
  { isTicked, givers }: { isTicked: boolean; givers: readonly Role[] },
): Html {
  const id = `role-${role.toLowerCase().replaceAll(" ", "-")}`;
  const isOff = role === HIGHEST_ROLE && !givers.includes(HIGHEST_ROLE);
  return html`<div class="item${isOff && " off"}">
<input type="checkbox" id="${id}" name="role" value="${role}" aria-describedby="${id}-hint"${
    isTicked && html` checked`
  }${isOff && html` disabled`}>
<span class="what"><label class="name" for="${id}">${role}</label>
<span class="quiet" id="${id}-hint">${ROLES[role].description}</span></span>
</div>`;
}
