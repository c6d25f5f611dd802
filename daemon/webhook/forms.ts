import type { Busboy, BusboyConfig, FileInfo } from 'busboy'
import { DoorwardError } from '../../shared/errors.ts'

/*
 * Bodies of `multipart/form-data` (RFC 7578), parsed by busboy. Loaded with the first such delivery, as few
 * senders use it.
 */

let busboy: ((config: BusboyConfig) => Busboy) | undefined

/** Loads the parser; `parseMultipart` needs it. */
export const loadMultipart = async (): Promise<void> => {
  busboy ??= (await import('busboy')).default
}

/** What remains of a file: its content is not kept. */
type NamedFile = { readonly filename?: string; readonly type: string; readonly size: number }

const maxParts = 100

/**
 * The fields of a form and the files in it, in their order. Throws `payload-not-json` when it is cut off,
 * malformed or has more than 100 parts. Busboy parses what is written at once, within the call.
 */
export const parseMultipart = (
  bytes: Buffer,
  contentType: string,
): [name: string, value: string | NamedFile][] => {
  const boundary = findBoundary(bytes, contentType)
  const fields: [string, string | (() => NamedFile)][] = []
  let fault: string | undefined
  try {
    if (!busboy) throw new DoorwardError('internal', 'the parser of multipart forms is not loaded')
    const limit = bytes.length + 1
    const parser = busboy({
      headers: { 'content-type': contentType },
      defParamCharset: 'utf8',
      // A file is never read: it must fit, or the parser would wait.
      fileHwm: limit,
      limits: { fieldSize: limit, parts: maxParts },
    })
    parser.on('field', (name: string | undefined, value) => fields.push([name ?? '', value]))
    parser.on(
      'file',
      (name: string | undefined, file, { filename, mimeType }: Partial<FileInfo>) => {
        file.on('error', () => {})
        const toFile = () => ({
          ...(filename !== undefined && { filename }),
          type: mimeType ?? '',
          size: file.readableLength,
        })
        fields.push([name ?? '', toFile])
      },
    )
    parser.on('error', () => (fault ??= 'is malformed'))
    parser.on('partsLimit', () => (fault ??= `has more than ${maxParts - 1} parts`))
    parser.write(bytes)
    parser.destroy()
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw invalidForm('is malformed')
  }
  if (!bytes.includes(`\r\n--${boundary}--`)) fault ??= 'is cut off'
  if (fault !== undefined) throw invalidForm(fault)
  return fields.map(([name, value]) => [name, typeof value === 'string' ? value : value()])
}

/**
 * The boundary at the very beginning, where JSON that is called a form has none: no signature covers the
 * content type.
 */
const findBoundary = (bytes: Buffer, contentType: string): string => {
  const [, boundary] = /^(?:\r\n)?--([^\r\n]{1,70})\r\n/.exec(bytes.toString('latin1', 0, 80)) ?? []
  if (boundary === undefined || !contentType.includes(boundary))
    throw invalidForm('does not begin with its boundary')
  return boundary
}

const invalidForm = (fault: string) =>
  new DoorwardError('payload-not-json', `the multipart form ${fault}`)
