/*
 * How the answer is found in what each agent program prints, and how its failures are told. Pure:
 * output in, answer out.
 */

/** What a program printed before it ended by itself. */
export type Printed = {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number | null
}

/** Why there is no answer, in the program's own words; they may repeat the prompt. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** `claude -p --output-format json`: one result document, after notices at times; `subtype` says success even of a failure. */
export const claudeAnswer = ({ stdout, exitCode }: Printed): string => {
  const document = jsonOf(stdout) ?? jsonLines(stdout)
  // With --verbose it is a list, of which the result is the last.
  const result = [document].flat().findLast((item) => textAt(item, 'type') === 'result')
  if (result === undefined) throw new NoAnswer('')
  const text = textAt(result, 'result')
  if (text === undefined || valueIn(result, 'is_error') === true || exitCode !== 0)
    throw new NoAnswer(text ?? claudeErrors(result))
  // With --json-schema the answer stands there, and the text is empty.
  const structured = valueIn(result, 'structured_output') ?? undefined
  return text === '' && structured !== undefined ? JSON.stringify(structured) : text
}

/** A failure without a result has `errors`, a list of texts, beside the subtype that names its kind. */
const claudeErrors = (result: unknown): string => {
  const errors = [valueIn(result, 'errors')].flat().filter((error) => typeof error === 'string')
  return [textAt(result, 'subtype'), errors.join('; ')].filter(Boolean).join(': ')
}

/** `codex exec --json`: JSON lines; the last message of the agent is the answer. */
export const codexAnswer = ({ stdout, exitCode }: Printed): string => {
  const lines = jsonLines(stdout)
  const failed = lines.findLast((line) => textAt(line, 'type') === 'turn.failed')
  const lastError = lines.findLast((line) => textAt(line, 'type') === 'error')
  if (failed !== undefined || exitCode !== 0)
    throw new NoAnswer(
      textAt(valueIn(failed, 'error'), 'message') ?? textAt(lastError, 'message') ?? '',
    )
  const answer = lines
    .filter((line) => textAt(line, 'type') === 'item.completed')
    .map((line) => valueIn(line, 'item'))
    .findLast((item) => textAt(item, 'type') === 'agent_message')
  const text = textAt(answer, 'text')
  if (text === undefined) throw new NoAnswer('')
  return text
}

/** `opencode run --format json`: JSON lines; the texts of the last message are the answer. */
export const opencodeAnswer = ({ stdout, exitCode }: Printed): string => {
  const lines = jsonLines(stdout)
  const failed = lines.findLast((line) => textAt(line, 'type') === 'error')
  if (failed !== undefined || exitCode !== 0) {
    const error = valueIn(failed, 'error')
    throw new NoAnswer(textAt(valueIn(error, 'data'), 'message') ?? textAt(error, 'name') ?? '')
  }
  const parts = lines
    .filter((line) => textAt(line, 'type') === 'text')
    .map((line) => valueIn(line, 'part'))
  const last = textAt(parts.at(-1), 'messageID')
  if (parts.length === 0) throw new NoAnswer('')
  return parts
    .filter((part) => textAt(part, 'messageID') === last)
    .map((part) => textAt(part, 'text') ?? '')
    .join('')
}

/** Exit codes of https://geminicli.com/docs/cli/headless; others are an HTTP status modulo 256. */
const geminiCodes: Readonly<Record<number, string>> = {
  41: 'it is not logged in',
  42: 'it did not take its input',
  44: 'its sandbox does not work',
  52: 'its settings cannot be used',
  53: 'it used up its turns',
  145: 'the model refused its login (401)',
  147: 'the model refused its login (403)',
  173: 'too many requests (429)',
  244: 'the model failed (500)',
  247: 'the model is overloaded (503)',
}

/** `gemini -o json`: one document; a failure is one on standard error, after warnings. */
export const geminiAnswer = ({ stdout, stderr, exitCode }: Printed): string => {
  const document = documentIn(stdout) ?? documentIn(stderr)
  const error = valueIn(document, 'error')
  if (exitCode !== 0 || (error !== undefined && error !== null)) {
    const words = exitCode === null ? undefined : geminiCodes[exitCode]
    throw new NoAnswer([words, textAt(error, 'message')].filter(Boolean).join(': '))
  }
  const text = textAt(document, 'response')
  if (text === undefined) throw new NoAnswer('')
  return text
}

/** The document that a text is, or that it ends with after notices. */
const documentIn = (text: string): unknown =>
  jsonOf(text) ?? jsonOf(text.slice(text.lastIndexOf('\n{') + 1))

/** `llm prompt`: the answer itself. */
export const llmAnswer = ({ stdout, exitCode }: Printed): string => {
  if (exitCode !== 0) throw new NoAnswer('')
  return stdout.replace(/\n$/, '')
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The lines that are JSON; a last one that was cut off is none. */
const jsonLines = (text: string): unknown[] =>
  text.split('\n').flatMap((line) => (line.startsWith('{') ? (jsonOf(line) ?? []) : []))

const valueIn = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

const textAt = (value: unknown, name: string): string | undefined => {
  const text = valueIn(value, name)
  return typeof text === 'string' ? text : undefined
}
