/** The most used options of a rendering as fields. All others can be written as JSON. */
import { Check, SelectField, TextField } from "../parts/form.tsx";
import { type Action, type Body, valueAt, withValue } from "./render-request.ts";

interface OptionsProps {
  action: Action;
  body: Body;
  onChange: (body: Body) => void;
}

const pointerOf = (path: string) => `/${path.replaceAll(".", "/")}`;
const PAPERS = ["letter", "legal", "tabloid", "a3", "a4", "a5"];
const WAITS = ["load", "domcontentloaded", "networkidle0", "networkidle2"];

export function OptionFields({ action, body, onChange }: OptionsProps) {
  return (
    <>
      {action === "pdf" ? (
        <PdfFields body={body} onChange={onChange} />
      ) : (
        <PictureFields body={body} onChange={onChange} />
      )}
      <Choice
        label="Wait until"
        path="gotoOptions.waitUntil"
        options={WAITS}
        body={body}
        onChange={onChange}
      />
    </>
  );
}

type FieldsProps = Pick<OptionsProps, "body" | "onChange">;

function PdfFields(props: FieldsProps) {
  return (
    <>
      <Choice label="Paper" path="pdfOptions.format" options={PAPERS} {...props} />
      <Amount label="Scale" path="pdfOptions.scale" step={0.1} {...props} />
      <Flag label="Landscape" path="pdfOptions.landscape" {...props} />
      <Flag label="Backgrounds" path="pdfOptions.printBackground" {...props} />
      <Flag label="Bookmarks from headings" path="pdfOptions.outline" {...props} />
    </>
  );
}

function PictureFields(props: FieldsProps) {
  return (
    <>
      <Choice
        label="Type"
        path="screenshotOptions.type"
        options={["png", "jpeg", "webp"]}
        {...props}
      />
      <Viewport {...props} />
      <Flag label="The whole page" path="screenshotOptions.fullPage" {...props} />
      <Flag label="Transparent background" path="screenshotOptions.omitBackground" {...props} />
    </>
  );
}

/** A viewport has both or none. */
function Viewport({ body, onChange }: FieldsProps) {
  const size = `${valueAt(body, "viewport.width") ?? ""}x${valueAt(body, "viewport.height") ?? ""}`;
  const options = ["1920x1080", "1280x800", "768x1024", "390x844"];
  const choose = (text: string) => {
    const [width, height] = text.split("x").map(Number);
    onChange(withValue(body, "viewport", text === "" ? undefined : { width, height }));
  };
  const isOther = size !== "x" && !options.includes(size);
  return (
    <SelectField
      label="Window"
      pointer="/viewport"
      value={size === "x" ? "" : size}
      onChange={choose}
      options={[
        { value: "", label: "Preset (1920 × 1080)" },
        ...[...options, ...(isOther ? [size] : [])].map((value) => ({
          value,
          label: value.replace("x", " × "),
        })),
      ]}
    />
  );
}

interface OneProps extends FieldsProps {
  label: string;
  path: string;
}

function Choice({
  label,
  path,
  options,
  body,
  onChange,
}: OneProps & { options: readonly string[] }) {
  const value = valueAt(body, path);
  return (
    <SelectField
      label={label}
      pointer={pointerOf(path)}
      value={typeof value === "string" ? value : ""}
      onChange={(next) => onChange(withValue(body, path, next === "" ? undefined : next))}
      options={[
        { value: "", label: "Preset" },
        ...options.map((one) => ({ value: one, label: one })),
      ]}
    />
  );
}

function Flag({ label, path, body, onChange }: OneProps) {
  return (
    <Check
      label={label}
      isOn={valueAt(body, path) === true}
      onChange={(isOn) => onChange(withValue(body, path, isOn || undefined))}
    />
  );
}

function Amount({ label, path, step, body, onChange }: OneProps & { step: number }) {
  const value = valueAt(body, path);
  return (
    <TextField
      label={label}
      type="number"
      step={step}
      pointer={pointerOf(path)}
      value={typeof value === "number" ? String(value) : ""}
      placeholder="1"
      onChange={(text) => onChange(withValue(body, path, text === "" ? undefined : Number(text)))}
    />
  );
}
