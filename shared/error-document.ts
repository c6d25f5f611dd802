import { DoorwardError, nameOf } from './errors.ts'

/** The document that `--json` prints on standard error, with the field names of the API. */
export type ErrorDocument = {
  readonly code: string
  readonly detail: string
  readonly hint?: string
  readonly problems?: readonly unknown[]
}

/** Any thrown value as a document; a foreign error shows its class and code, never its message. */
export const errorDocument = (error: unknown): ErrorDocument => {
  if (!(error instanceof DoorwardError))
    return {
      code: 'internal',
      detail: `something went wrong (${nameOf(error)})`,
      hint: 'run it again with DOORWARD_DEBUG=1 to see where',
    }
  return {
    code: error.code,
    detail: error.message,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...('problems' in error && Array.isArray(error.problems) ? { problems: error.problems } : {}),
  }
}
