import { errorDocument } from '../shared/errors.ts'
import { plainJson, plainLines } from '../shared/text.ts'
import { asTyped } from './as-typed.ts'
import { writeError } from './terminal.ts'

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
