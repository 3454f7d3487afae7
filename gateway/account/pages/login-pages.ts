/** The pages /login and /signup. */

import { PASSWORD_CHARS_MIN } from "../../../schemas/account/limits.ts";
import { ActorError, isPassing } from "../../../schemas/errors.ts";
import { countWork, timeWork } from "../../../schemas/meter.ts";
import { CONSOLE, consolePathOf } from "../../pages/console-path.ts";
import { field, refusalNote } from "../../pages/forms.ts";
import { html } from "../../pages/html.ts";
import { Refused, staleForm } from "../../pages/refused.ts";
import { isUnchecked } from "../password-hasher.ts";
import type { FormPage } from "./form-page.ts";
import { loginResult, type Waiting } from "./interactions.ts";
import type { PageParts } from "./page-parts.ts";
import { acceptInvitation, findInvitation, type Person, signIn, signUp } from "./sign-in.ts";
import type { Visit } from "./visit.ts";

/** The authorization request, invitation or console page to which the person continues after sign-in. */
interface Aim {
  uid: string;
  waiting: Waiting | undefined;
  invitation: string;
  /** A path of the console; empty: its first page. */
  next: string;
}

/** The pages for signing in, signing up and signing out. */
export function loginPages(parts: PageParts): FormPage[] {
  return [
    { path: "/login", get: showLogin(parts), post: login(parts) },
    { path: "/signup", get: showSignup(parts), post: signup(parts) },
    { path: "/signout", post: signOut(parts) },
  ];
}

function showLogin(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const aim = await readAim(parts, visit, (name) => visit.query(name));
    if (!aim) return;
    const { signedIn } = visit;
    // Whether the request requires a new sign-in. If not, a person who is already signed in, for example in another
    // tab, continues without the form.
    const must = aim.waiting?.prompt.reasons.some((reason) => reason !== "no_session");
    // Only a submitted form accepts an invitation: opening a link must not make a person a member.
    const hasSignedUp = visit.query("signed_up") !== "";
    if (signedIn && !must && !hasSignedUp && aim.invitation === "") {
      return goOn(parts, visit, aim, signedIn);
    }
    const invited = await findInvitation(parts.actors, aim.invitation);
    const email = invited?.email ?? aim.waiting?.params.login_hint ?? "";
    await showLoginForm(parts, visit, aim, { email, hasSignedUp });
  };
}

function login(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const aim = await readAim(parts, visit, (name) => visit.text(name));
    if (!aim) return;
    const email = visit.text("email");
    await orRefuse(
      visit,
      async () => {
        await checkForm(visit, "login");
        const password = visit.text("password");
        const { address } = visit;
        const known = (of: string) => visit.knownAs(of);
        const given = { email, password, address, known };
        const person = await metered(() => signIn(parts.actors, given));
        await goOn(parts, visit, aim, await visit.signIn(person));
      },
      (refused) => showLoginForm(parts, visit, aim, { email, refused }),
    );
  };
}

/** Counts and times a sign-in. */
async function metered<T>(signingIn: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const outcomeOf = (error: unknown) => {
    const refused = refusalOf(error);
    if (!refused) return "failed";
    return refused.status === 429 || isUnchecked(error) ? "limited" : "wrong";
  };
  try {
    const person = await signingIn();
    countWork("logins_total", { outcome: "good" });
    return person;
  } catch (error) {
    countWork("logins_total", { outcome: outcomeOf(error) });
    throw error;
  } finally {
    timeWork("login_seconds", {}, performance.now() - startedAt);
  }
}

function showSignup(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const aim = await readAim(parts, visit, (name) => visit.query(name));
    if (aim) await showSignupForm(parts, visit, aim, { email: "" });
  };
}

/**
 * After sign-up, redirects to the sign-in page whether or not the address already had a user. If sign-up opened a
 * session, a stranger could see which addresses have no user yet.
 */
function signup(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const aim = await readAim(parts, visit, (name) => visit.text(name));
    if (!aim) return;
    const email = visit.text("email");
    await orRefuse(
      visit,
      async () => {
        await checkForm(visit, "signup");
        const invited = await findInvitation(parts.actors, aim.invitation);
        if (!invited && parts.signup === "closed") throw new Refused(403, "Sign-up is closed.");
        await signUp(parts.actors, {
          email: invited?.email ?? email,
          password: visit.text("password"),
          address: visit.address,
          isInvited: invited !== undefined,
        });
        visit.leadTo(parts.link(`/login${aimQuery(aim, { signed_up: "1" })}`));
      },
      (refused) => showSignupForm(parts, visit, aim, { email, refused }),
    );
  };
}

function signOut(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    if (await visit.isOurForm("signout")) await visit.signOut();
    visit.leadTo(parts.link("/login"));
  };
}

/**
 * Reads where the person continues after sign-in. If the authorization request has ended, it shows a page that says
 * so and resolves to undefined.
 */
async function readAim(
  parts: PageParts,
  visit: Visit,
  read: (name: string) => string,
): Promise<Aim | undefined> {
  const uid = read("interaction");
  const invitation = read("invitation");
  const next = consolePathOf(read("next"));
  if (uid === "") return { uid, invitation, next, waiting: undefined };
  const waiting = await parts.interactions.find(visit, uid);
  if (waiting) return { uid, invitation, next, waiting };
  parts.showOver(visit);
  return undefined;
}

async function goOn(
  parts: PageParts,
  visit: Visit,
  { uid, waiting, invitation, next }: Aim,
  person: Person & { authenticatedAt: number },
): Promise<void> {
  const { actors, interactions, link } = parts;
  if (invitation !== "") await acceptInvitation(actors, invitation, person);
  if (!waiting) return visit.leadTo(link(next || CONSOLE));
  const result = loginResult(person);
  visit.leadTo(await interactions.finish(visit, uid, { waiting, result }));
}

async function checkForm(visit: Visit, purpose: string): Promise<void> {
  if (!(await visit.isOurForm(purpose))) throw staleForm();
}

async function orRefuse(
  visit: Visit,
  work: () => Promise<void>,
  refuse: (refused: Refused) => Promise<void>,
) {
  try {
    await work();
  } catch (error) {
    const refused = refusalOf(error);
    if (!refused) throw error;
    visit.noteRefusal(refused);
    await refuse(refused);
  }
}

async function showLoginForm(
  parts: PageParts,
  visit: Visit,
  aim: Aim,
  { email, refused, hasSignedUp }: { email: string; refused?: Refused; hasSignedUp?: boolean },
): Promise<void> {
  const { link, signup } = parts;
  const canSignUp = signup === "open" || aim.invitation !== "";
  visit.show(refused?.status ?? 200, {
    title: "Sign in",
    leadsOut: aim.waiting !== undefined,
    body: html`<h1>Sign in</h1>
${hasSignedUp && html`<p class="note good" role="status">Sign in to continue. If you already had an account, its password is unchanged.</p>`}
${aim.waiting && html`<p>Then you decide what the application you came from may do.</p>`}
${refusalNote(refused)}
<form method="post" action="${link("/login")}">
${await visit.markField("login")}
${aimFields(aim)}
${field({ name: "email", label: "Email", type: "email", autocomplete: "username", value: email, refused })}
${field({ name: "password", label: "Password", type: "password", autocomplete: "current-password", refused })}
<button class="wide">Sign in</button>
</form>
${canSignUp && html`<p class="quiet">No account yet? <a href="${link(`/signup${aimQuery(aim)}`)}">Create one</a></p>`}`,
  });
}

async function showSignupForm(
  parts: PageParts,
  visit: Visit,
  aim: Aim,
  { email, refused }: { email: string; refused?: Refused },
): Promise<void> {
  const { actors, link, signup } = parts;
  const invited = await findInvitation(actors, aim.invitation);
  const signIn = html`<p class="quiet">Have an account already? <a href="${link(`/login${aimQuery(aim)}`)}">Sign in</a></p>`;
  if (!invited && (signup === "closed" || aim.invitation !== "")) {
    const isOver = aim.invitation !== "";
    return visit.show(refused?.status ?? 403, {
      title: "Create account",
      body: html`<h1>${isOver ? "This invitation is over" : "By invitation only"}</h1>
<p>${
        isOver
          ? "It was used or taken back, or it has expired. Ask whoever sent it for another."
          : "New people join here by an invitation. Ask an administrator of your account for one."
      }</p>
${signIn}`,
    });
  }
  const fixed = invited?.email;
  visit.show(refused?.status ?? 200, {
    title: "Create account",
    leadsOut: aim.waiting !== undefined,
    body: html`<h1>Create account</h1>
${invited && html`<p>You are invited to the account <strong>${invited.accountName}</strong> as ${invited.roles.join(", ")}.</p>`}
${refusalNote(refused)}
<form method="post" action="${link("/signup")}">
${await visit.markField("signup")}
${aimFields(aim)}
${field({
  name: "email",
  label: "Email",
  type: "email",
  autocomplete: "username",
  value: fixed ?? email,
  refused,
  ...(fixed !== undefined && { hint: "The address the invitation was sent to" }),
})}
${field({
  name: "password",
  label: "Password",
  type: "password",
  autocomplete: "new-password",
  hint: `At least ${PASSWORD_CHARS_MIN} characters`,
  refused,
})}
<button class="wide">Create account</button>
</form>
${signIn}`,
  });
}

function refusalOf(error: unknown): Refused | undefined {
  if (error instanceof Refused) return error;
  if (!(error instanceof ActorError)) return undefined;
  const { retryAfterS } = error.details;
  if (error.code === "queue_full") {
    return new Refused(429, "Too many people sign in from where you are. Try again shortly.", {
      retryAfterS,
    });
  }
  if (!isPassing(error)) return undefined;
  const text = "We cannot do this at the moment. Try again shortly.";
  return new Refused(503, text, { retryAfterS });
}

function aimFields({ uid, invitation, next }: Aim) {
  return html`${uid !== "" && html`<input type="hidden" name="interaction" value="${uid}">`}
${invitation !== "" && html`<input type="hidden" name="invitation" value="${invitation}">`}
${next !== "" && html`<input type="hidden" name="next" value="${next}">`}`;
}

function aimQuery({ uid, invitation, next }: Aim, more: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    ...more,
    ...(uid !== "" && { interaction: uid }),
    ...(invitation !== "" && { invitation }),
    ...(next !== "" && { next }),
  });
  return query.size > 0 ? `?${query}` : "";
}
