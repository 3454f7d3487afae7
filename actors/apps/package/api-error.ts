/** What a binding throws where the API refuses. */

export class ApiError extends Error {
  /** Its name, as `NOT_FOUND`. */
  readonly code: string;
  /** As the API numbers it. */
  readonly numericCode: number;
  /** HTTP status. */
  readonly status: number;
  /** To the field that is wrong, as `/name`. */
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

/** Error of the binding for repositories. */
export class ArtifactsError extends ApiError {
  override readonly name = "ArtifactsError";
}
