/** The thread of JsonChecker. It parses an answer and validates it against its schema. */
import { parentPort } from "node:worker_threads";
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

/** Maximum validation errors that are sent to the model, and maximum characters of their text. */
export const JSON_FAULTS_MAX = 20;
export const JSON_FAULT_CHARS_MAX = 2_000;

export interface JsonCheck {
  /** JSON Schema, as JSON. */
  schema: string;
  /** The answer; absent to check only the schema. */
  text?: string | undefined;
}

export type JsonVerdict =
  /** The checked answer as compact JSON; empty if only the schema was checked. */
  | { kind: "valid"; json: string }
  | { kind: "invalid"; faults: string }
  | { kind: "bad_schema"; reason: string };

/** The last compiled schema. The pages of a job share one schema, and compiling takes longer than validating. */
let compiled: { schema: string; validate: ValidateFunction } | undefined;

parentPort?.on("message", (check: JsonCheck) => {
  parentPort?.postMessage(verdictOf(check));
});

function verdictOf({ schema, text }: JsonCheck): JsonVerdict {
  let validate: ValidateFunction;
  try {
    validate = compile(schema);
  } catch (error) {
    return { kind: "bad_schema", reason: clipped(messageOf(error)) };
  }
  if (text === undefined) return { kind: "valid", json: "" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { kind: "invalid", faults: clipped(`it is no JSON: ${messageOf(error)}`) };
  }
  try {
    if (validate(value)) return { kind: "valid", json: JSON.stringify(value) };
    return { kind: "invalid", faults: faultsOf(validate.errors ?? []) };
  } catch (error) {
    // The schema or the answer may be nested too deeply for the stack.
    return { kind: "invalid", faults: clipped(messageOf(error)) };
  }
}

function compile(schema: string): ValidateFunction {
  if (compiled?.schema === schema) return compiled.validate;
  const { $schema, ...rest } = JSON.parse(schema);
  const options = {
    allErrors: true,
    // Unknown keywords such as `example` are allowed. Formats are not validated, because the standard treats them as
    // annotations.
    strict: false,
    validateFormats: false,
    logger: false,
  } as const;
  const old = typeof $schema === "string" && /draft-0[4-7]/.test($schema);
  const validate = (old ? new Ajv(options) : new Ajv2020(options)).compile(rest);
  if ("$async" in validate) throw new Error("asynchronous schemas are not supported");
  compiled = { schema, validate };
  return validate;
}

function faultsOf(errors: readonly ErrorObject[]): string {
  const faults = errors.slice(0, JSON_FAULTS_MAX).map(({ instancePath, message, params }) => {
    const values = JSON.stringify(params);
    return `${instancePath || "the value"} ${message ?? "is wrong"} ${values === "{}" ? "" : values}`;
  });
  return clipped(faults.map((fault) => fault.trim()).join("; "));
}

function clipped(text: string): string {
  return text.length <= JSON_FAULT_CHARS_MAX ? text : `${text.slice(0, JSON_FAULT_CHARS_MAX)}…`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
