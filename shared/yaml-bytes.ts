import { isUtf8 } from 'node:buffer'
import { type Problem, type YamlFile, readYaml } from './yaml-file.ts'

/**
 * Reads YAML from the bytes of a file, as `readYaml` does. Bytes that are no UTF-8 are a problem with its
 * place: read all the same, another letter would stand in a filter or a prompt than the one that was
 * written, and be written back so. `text` is what was read, byte for byte.
 */
export const readYamlBytes = (
  file: string,
  bytes: Buffer,
): YamlFile & { readonly text: string } => {
  const text = bytes.toString('utf8')
  // A NUL is allowed in UTF-8 and not in YAML, and every other byte of UTF-16 is one.
  if (isUtf8(bytes) && !bytes.includes(0)) return { ...readYaml(file, text), text }
  return { ...readYaml(file, ''), text, isReadable: false, problems: [problemIn(file, bytes)] }
}

const problemIn = (file: string, bytes: Buffer): Problem => {
  const hint = 'save it as UTF-8'
  const isUtf16 = /^(\xff\xfe|\xfe\xff|\0.|.\0)/s.test(bytes.toString('latin1', 0, 2))
  if (isUtf16) return { file, line: 1, column: 1, key: '', reason: 'the file is UTF-16', hint }
  // One character a byte, so that the line ends stand where they are.
  const lines = bytes.toString('latin1').split('\n')
  const wrong = lines.findIndex((line) => isNoText(Buffer.from(line, 'latin1')))
  const shown = Buffer.from(lines[wrong] ?? '', 'latin1').toString('utf8')
  const column = Math.max(shown.search(/[\ufffd\0]/), 0) + 1
  return { file, line: wrong + 1, column, key: '', reason: 'what stands here is no UTF-8', hint }
}

const isNoText = (line: Buffer): boolean => !isUtf8(line) || line.includes(0)
