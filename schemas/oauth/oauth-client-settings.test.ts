import { expect } from "chai";
import { ClientName } from "./oauth-client-settings.ts";

describe("names of OAuth clients", () => {
  it("are accepted in every script", () => {
    for (const name of ["Build Bot", "Bücher", "構建機器人", "بناء", "निर्माण", "🛠 Bot", "a"]) {
      expect(ClientName.safeParse(name).success, name).to.equal(true);
    }
  });

  it("are refused with an invisible character, and without any visible one", () => {
    const unseen = [0x7, 0xad, 0x200b, 0x200d, 0x200f, 0x202e, 0x2028, 0x2060, 0x2066, 0x2800];
    for (const code of [...unseen, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xe0041]) {
      const character = String.fromCodePoint(code);
      for (const name of [character, `Build${character} Bot`]) {
        expect(ClientName.safeParse(name).success, code.toString(16)).to.equal(false);
      }
    }
    for (const name of ["", " ", "\u3000", "\u00a0"]) {
      expect(ClientName.safeParse(name).success, JSON.stringify(name)).to.equal(false);
    }
  });
});
