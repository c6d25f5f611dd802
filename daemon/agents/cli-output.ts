import { textAt, valueAt, parseJson } from '../util/payload-path.ts'

/*
 * How to find the answer, or the reason of a failure, in the output of each agent program. Pure: output
 * in, answer out.
 */

/** The output of a program that has exited. */
export type CliOutput = {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number | null
}

/** Why there is no answer, in the program's own words, which may repeat the prompt. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  readonly code: 'agent-failed' | 'budget-reached'

  constructor(message: string, code: 'agent-failed' | 'budget-reached' = 'agent-failed') {
    super(message)
    this.code = code
  }
}

/** `claude -p --output-format json`: one result document, sometimes after notices; `subtype` is `success` even for some failures. */
export const readClaudeAnswer = ({ stdout, exitCode }: CliOutput): string => {
  const document = parseJson(stdout) ?? parseJsonLines(stdout)
  // --verbose makes a list that ends with the result.
  const result = [document].flat().findLast((item) => textAt(item, 'type') === 'result')
  if (result === undefined) throw new NoAnswer('')
  const text = textAt(result, 'result')
  if (textAt(result, 'subtype') === 'error_max_budget_usd')
    throw new NoAnswer(describeClaudeErrors(result), 'budget-reached')
  if (text === undefined || valueAt(result, ['is_error']) === true || exitCode !== 0)
    throw new NoAnswer(text ?? describeClaudeErrors(result))
  // --json-schema puts the answer here and leaves the text empty.
  const structured = valueAt(result, ['structured_output']) ?? undefined
  return text === '' && structured !== undefined ? JSON.stringify(structured) : text
}

/** A failure without a result has a list of texts, and a subtype that names the kind. */
const describeClaudeErrors = (result: unknown): string => {
  const errors = [valueAt(result, ['errors'])].flat().filter((error) => typeof error === 'string')
  return [textAt(result, 'subtype'), errors.join('; ')].filter(Boolean).join(': ')
}

/** `codex exec --json`: JSON lines; the agent's last message is the answer. */
export const readCodexAnswer = ({ stdout, exitCode }: CliOutput): string => {
  const lines = parseJsonLines(stdout)
  const failed = lines.findLast((line) => textAt(line, 'type') === 'turn.failed')
  const lastError = lines.findLast((line) => textAt(line, 'type') === 'error')
  if (failed !== undefined || exitCode !== 0)
    throw new NoAnswer(textAt(failed, 'error', 'message') ?? textAt(lastError, 'message') ?? '')
  const answer = lines.findLast(
    (line) =>
      textAt(line, 'type') === 'item.completed' && textAt(line, 'item', 'type') === 'agent_message',
  )
  const text = textAt(answer, 'item', 'text')
  if (text === undefined) throw new NoAnswer('')
  return text
}

/** `opencode run --format json`: JSON lines; the texts of the last message are the answer. */
export const readOpencodeAnswer = ({ stdout, exitCode }: CliOutput): string => {
  const lines = parseJsonLines(stdout)
  const failed = lines.findLast((line) => textAt(line, 'type') === 'error')
  if (failed !== undefined || exitCode !== 0)
    throw new NoAnswer(
      textAt(failed, 'error', 'data', 'message') ?? textAt(failed, 'error', 'name') ?? '',
    )
  const texts = lines.filter((line) => textAt(line, 'type') === 'text')
  if (texts.length === 0) throw new NoAnswer('')
  const last = textAt(texts.at(-1), 'part', 'messageID')
  return texts
    .filter((line) => textAt(line, 'part', 'messageID') === last)
    .map((line) => textAt(line, 'part', 'text') ?? '')
    .join('')
}

/** `gemini -o json`: one document; a failure is one on standard error, after warnings. */
export const readGeminiAnswer = ({ stdout, stderr, exitCode }: CliOutput): string => {
  const document = parseLastDocument(stdout) ?? parseLastDocument(stderr)
  const error = valueAt(document, ['error']) ?? undefined
  if (exitCode !== 0 || error !== undefined) throw new NoAnswer(textAt(error, 'message') ?? '')
  const text = textAt(document, 'response')
  if (text === undefined) throw new NoAnswer('')
  return text
}

/** `llm prompt`: the answer itself. */
export const readLlmAnswer = ({ stdout, exitCode }: CliOutput): string => {
  if (exitCode !== 0) throw new NoAnswer('')
  return stdout.replace(/\n$/, '')
}

/** The whole text, or the document at its end after notices. */
export const parseLastDocument = (text: string): unknown =>
  parseJson(text) ?? parseJson(text.slice(text.lastIndexOf('\n{') + 1))

/** Skips lines that are not JSON, such as a last one that was cut off. */
export const parseJsonLines = (text: string): unknown[] =>
  text.split('\n').flatMap((line) => (line.startsWith('{') ? (parseJson(line) ?? []) : []))
