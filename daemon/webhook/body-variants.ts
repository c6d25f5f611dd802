/** Bodies up to this size are written anew; JSON of this size is parsed in a moment. */
const maxBytes = 256 * 1024

export type BodyVariant = { readonly why: string; readonly body: Buffer }

/** What the body may have been before something between the sender and us wrote it anew, likeliest first. */
export const bodyVariants = function* (bytes: Buffer): Generator<BodyVariant> {
  if (bytes.length > maxBytes) return
  const text = bytes.toString('utf8')
  const rewritten = 'a proxy rewrote the body on its way here'
  yield* different(bytes, `${rewritten}: it took the line break from its end`, `${text}\n`)
  yield* different(
    bytes,
    `${rewritten}: it put a line break at its end`,
    text.replace(/\r?\n$/, ''),
  )
  yield* different(bytes, `${rewritten}: it changed its line breaks`, text.replace(/\r\n/g, '\n'))
  yield* different(
    bytes,
    `${rewritten}: it changed its line breaks`,
    text.replace(/\r?\n/g, '\r\n'),
  )
  if (text.startsWith('\ufeff'))
    yield* different(bytes, `${rewritten}: it put a byte order mark before it`, text.slice(1))
  for (const json of encodings(text))
    yield* different(bytes, `${rewritten}: it read the JSON and wrote it again`, json)
}

const different = function* (
  bytes: Buffer,
  why: string,
  text: string,
): Generator<BodyVariant, void, undefined> {
  const body = Buffer.from(text)
  if (!body.equals(bytes)) yield { why, body }
}

/** The ways in which the usual languages write the same JSON. */
const encodings = function* (text: string): Generator<string> {
  let compact: string
  let value: unknown
  try {
    value = JSON.parse(text)
    compact = JSON.stringify(value)
  } catch {
    // No JSON, or nested too deeply to be written.
    return
  }
  yield compact
  // PHP and Slack escape slashes, Python and PHP what is not ASCII; Python puts spaces; Stripe indents.
  yield compact.replaceAll('/', '\\/')
  yield ascii(compact)
  yield ascii(compact.replaceAll('/', '\\/'))
  const spaced = withSpaces(compact)
  yield ascii(spaced)
  yield spaced
  const indentations = indentationsIn(compact)
  for (const indent of [2, 4])
    if (indentations * indent <= maxBytes) yield JSON.stringify(value, null, indent)
}

/** How many steps of indentation all lines of this JSON have together: a small text can ask for gigabytes. */
const indentationsIn = (compact: string): number => {
  let depth = 0
  let indentations = 0
  for (let index = 0; index < compact.length; index += 1) {
    const character = compact[index]
    if (character === '"') {
      index = endOfString(compact, index)
      continue
    }
    if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    else if (character !== ',') continue
    indentations += depth
  }
  return indentations
}

const endOfString = (json: string, start: number): number => {
  let index = start + 1
  while (json[index] !== '"') index += json[index] === '\\' ? 2 : 1
  return index
}

const ascii = (json: string): string =>
  json.replace(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Python's `json.dumps`: a space behind each comma and colon that stands outside of strings. */
const withSpaces = (json: string): string =>
  json.replace(/"(?:[^"\\]|\\.)*"|[,:]/g, (part) => (part.startsWith('"') ? part : `${part} `))
