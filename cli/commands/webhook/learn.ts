import type { PayloadDescription } from '../../../shared/api/explain.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { formatBelow, parsePath } from '../../../shared/paths.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { interruptSignal } from '../../terminal/spinner.ts'
import { knownWebhook } from '../../daemon-client/webhooks.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { readTextInput } from '../../terminal/input.ts'
import { tableLines } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export type LearnOptions = { readonly from?: string; readonly all?: boolean }

/**
 * Waits for the next verified delivery of a webhook, or reads a file, and prints its paths and types
 * without values, with a filter and a prompt to start from. Throws `webhook-not-found`, `interrupted`.
 */
export const learnWebhook = async (
  context: Context,
  [path = '']: (string | undefined)[],
  { from, all = false }: LearnOptions,
): Promise<void> => {
  const { terminal } = context
  const payload = from === undefined ? undefined : parseJson(await readTextInput(from), from)
  const description = await withDaemon(context, async (client) => {
    if (payload !== undefined) {
      // The webhook need not exist yet.
      await knownWebhook(client, path, terminal)
      return client.post<PayloadDescription>('/webhooks/learn', { path, payload })
    }
    terminal.say(`waiting for the next delivery at ${path}; Ctrl-C ends it`)
    const signal = interruptSignal()
    return client.post<PayloadDescription>('/webhooks/learn', { path }, { timeoutMs: 0, signal })
  })
  if (terminal.json) terminal.printJson(description)
  else printDescription(description, all, terminal)
}

const parseJson = (text: string, file: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw new DoorwardError('usage', `${file} is not JSON`)
  }
}

/** More would push the proposal off the screen. */
const fewPaths = 10

const toYaml = (names: readonly string[]): string =>
  names.length === 1 ? names.join('') : `[${names.join(', ')}]`

const printDescription = (
  { webhook, paths, cut, on, filter, promptTemplate }: PayloadDescription,
  all: boolean,
  terminal: Terminal,
): void => {
  terminal.print(terminal.paint('bold', `# for ${toPlainLine(webhook)} in webhooks.yaml`))
  if (on !== undefined)
    terminal.print(`    on: ${toPlainLine(toYaml(on))} # the event that should run the agent`)
  else if (filter.length > 0) {
    terminal.print('    filter:')
    for (const path of filter)
      terminal.print(`      ${path}: '' # the value that should run the agent`)
  }
  terminal.print('    prompt_template: |')
  for (const line of promptTemplate.trimEnd().split('\n'))
    terminal.print(line === '' ? '' : `      ${toPlainLine(line)}`)
  const shown = all ? paths : paths.slice(0, fewPaths)
  const rows = shown.map(({ path, type }) => [formatBelow('event', parsePath(path)), type])
  terminal.print('')
  for (const line of tableLines([['PATH', 'TYPE'], ...rows])) terminal.print(line)
  const more = paths.length - shown.length
  if (more > 0) terminal.print(`… and ${more}${cut ? ' or more' : ''} others: --all shows them`)
  else if (cut) terminal.print('… and more')
}
