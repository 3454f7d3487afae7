import { expect } from "chai";
import { splitSourceMap } from "./split-source-map.ts";

const COMMENT = "//# sourceMappingURL=data:application/json;base64,";

describe("splitSourceMap()", () => {
  const split = (text: string) => {
    const { code, map } = splitSourceMap(Buffer.from(text));
    return { code: Buffer.from(code).toString(), map: map && Buffer.from(map).toString() };
  };

  it("takes the map from the end of a bundle, which keeps its lines", () => {
    const map = JSON.stringify({ version: 3, sources: ["é.ts"], mappings: "" });
    const comment = COMMENT + Buffer.from(map).toString("base64");
    for (const end of ["", "\n", "\n\n"]) {
      expect(split(`one;\n"é";\n${comment}${end}`)).to.deep.equal({ code: `one;\n"é";\n`, map });
    }
    const charset = comment.replace(";base64", ";charset=utf-8;base64");
    expect(split(`one;\n${charset}`).map).to.equal(map);
  });

  it("leaves a bundle as it is if it has no map, or only a text that looks like one", () => {
    for (const text of [
      ...[
        "",
        "one;",
        "one;\n//# sourceMappingURL=bundle.js.map\n",
        "one;\n//# sourceMappingURL=data:application/json,{}",
      ],
      `const text = \`\n${COMMENT}e30=\n\`;`,
    ]) {
      expect(split(text)).to.deep.equal({ code: text, map: undefined });
    }
  });
});
