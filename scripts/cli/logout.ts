/** `trunkline logout`: revokes the tokens of the login, and deletes the stored login. */
import { type Command, readParameters } from "./command.ts";
import { type Login, loginFolder, readLogin, removeLogin, withLoginLock } from "./login-file.ts";
import { revokeToken } from "./oauth-requests.ts";

export const logout: Command = {
  name: "logout",
  usage: "",
  summary: "end the login, on this machine and on the platform",
  help: "Revokes the tokens of this machine at once, and deletes them here.",
  async run(parameters, environment) {
    readParameters(parameters, {});
    const folder = loginFolder(environment);
    const login = await withLoginLock(folder, async () => {
      const login = await readLogin(folder).catch(() => undefined);
      if (login) await revoke(login);
      await removeLogin(folder);
      return login;
    });
    console.log(login ? `Logged out at ${login.api_url}` : "Nobody was logged in");
  },
};

async function revoke({ revocation_endpoint: endpoint, refresh_token: token, api_url }: Login) {
  try {
    await revokeToken(endpoint, token);
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    const where = `${api_url.replace(/\/v4$/, "")}/profile/clients`;
    console.error(`${reason}\nThe tokens are forgotten here; end them on the platform: ${where}`);
  }
}
