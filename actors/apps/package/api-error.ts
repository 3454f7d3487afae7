/** The error that a binding throws when the API refuses. */

export class ApiError extends Error {
  /** The name of the error, such as `NOT_FOUND`. */
  readonly code: string;
  /** The number of the error in the REST API. */
  readonly numericCode: number;
  /** HTTP status. */
  readonly status: number;
  /** JSON pointer to the invalid field, such as `/name`. */
  readonly pointer: string | undefined;

  constructor(
    message: string,
    {
      code,
      numericCode,
      status,
      pointer,
    }: { code: string; numericCode: number; status: number; pointer?: string | undefined },
  ) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.numericCode = numericCode;
    this.status = status;
    this.pointer = pointer;
  }
}

/** The error that the binding for repositories throws. */
export class ArtifactsError extends ApiError {
  override readonly name = "ArtifactsError";
}
