import { DoorwardError, nameOf } from '../shared/errors.ts'
import { plainJson, plainLines } from '../shared/plain-text.ts'
import { asTyped } from './as-typed.ts'
import { writeError } from './terminal.ts'

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

/** Writes an error to standard error: `doorward: <what>` and a hint, or the JSON document. */
export const reportError = (error: unknown, json: boolean): void => {
  const document = errorDocument(error)
  if (json) {
    process.stderr.write(`${plainJson(JSON.stringify(document, null, 2))}\n`)
    return
  }
  writeError(`doorward: ${plainLines(document.detail)}`)
  if (document.hint) writeError(`hint: ${plainLines(asTyped(document.hint))}`)
  if (process.env['DOORWARD_DEBUG'] && error instanceof Error && error.stack)
    writeError(plainLines(error.stack))
}
