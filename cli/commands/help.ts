import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { DoorwardError } from '../../shared/errors.ts'
import { didYouMean } from '../../shared/text.ts'
import { packageFolder } from '../../shared/version.ts'
import type { Context } from '../context.ts'
import { renderMarkdown } from '../terminal/markdown.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { wrapLine } from '../terminal/wrap.ts'

/** Longer lines are hard to read, however wide the terminal. */
const widest = 100

/**
 * Shows the help of a command (`events retry`), a page of the docs (`webhooks`), or the entry of an error
 * code (`signature-invalid`). Throws `usage` with the nearest name for anything else.
 */
export const showHelp = async (
  { terminal }: Context,
  words: readonly string[],
  program: Command,
): Promise<void> => {
  const command = commandAt(program, words)
  if (command) {
    const more = command === program ? topicLines(program, terminal.columns) : []
    if (terminal.json) {
      const text = [toHelp(command).trimEnd(), ...more].join('\n')
      terminal.printJson({ topic: words.join(' '), text })
      return
    }
    command.outputHelp()
    for (const line of more) terminal.print(line)
    // What the command shows may have a page too.
    const [name = ''] = words
    if (words.length === 1 && isHelpTopic(name))
      for (const line of ['', ...toLines(await readHelpTopic(name), terminal)]) terminal.print(line)
    return
  }
  const [name = ''] = words
  const text = words.length > 1 ? undefined : await findPage(name)
  if (text === undefined) throw await unknown(words, program)
  if (terminal.json) terminal.printJson({ topic: name, text })
  else for (const line of toLines(text, terminal)) terminal.print(line)
}

/** Prints the text by which an agent program sets doorward up, as it is: the reader is no person. */
export const printSetup = async ({ terminal }: Context): Promise<void> => {
  const text = await readHelpTopic('setup-for-agents')
  if (terminal.json) terminal.printJson({ text })
  else terminal.print(text.trimEnd())
}

/** Formatted as commander formats the commands above. */
const topicLines = (program: Command, columns = 80): string[] => {
  const help = Object.assign(program.createHelp(), { helpWidth: columns })
  const width = Math.max(...Object.keys(helpTopics).map((name) => name.length))
  const items = Object.entries(helpTopics).map(([name, what]) =>
    help.formatItem(name, width, what, help),
  )
  const codes = wrapLine('  and every error code, such as signature-invalid', columns, '  ')
  return ['', 'Topics:', ...items, codes]
}

/** Includes the text added by `addHelpText`, which `helpInformation` leaves out. */
const toHelp = (command: Command): string => {
  let help = ''
  command.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp()
  return help
}

const commandAt = (program: Command, words: readonly string[]): Command | undefined => {
  let command: Command | undefined = program
  for (const word of words) command = command?.commands.find((known) => known.name() === word)
  return command
}

const findPage = async (name: string): Promise<string | undefined> =>
  isHelpTopic(name) ? readHelpTopic(name) : (await troubleEntries()).get(name)

const toLines = (text: string, { columns, paint }: Terminal): string[] =>
  renderMarkdown(text, {
    width: Math.max(20, Math.min(widest, columns ?? 80)),
    paint,
    linked,
  })

/** Our own pages are shown as their command; other links as their URL, unless it is the text itself. */
const linked = (href: string, text: string): string => {
  const [, topic = ''] = /^([a-z-]+)\.md(?:#.*)?$/.exec(href) ?? []
  if (isHelpTopic(topic)) return `(doorward help ${topic})`
  return /^https?:/.test(href) && href !== text ? `(${href})` : ''
}

const unknown = async (words: readonly string[], program: Command): Promise<DoorwardError> => {
  const group = commandAt(program, words.slice(0, -1))
  const inGroup = words.length > 1 && group !== undefined && group.commands.length > 0
  const last = (inGroup ? words.at(-1) : words.join(' ')) ?? ''
  const known = (inGroup ? group : program).commands
    .map((command) => command.name())
    .filter((name) => !name.startsWith('_'))
  const names = inGroup
    ? known
    : [...known, ...Object.keys(helpTopics), ...(await troubleEntries()).keys()]
  const what = inGroup ? `command "${last}" of ${group.name()}` : `command or topic "${last}"`
  return new DoorwardError('usage', `there is no ${what}`, {
    hint: didYouMean(last, names) ?? 'doorward help lists commands and topics',
  })
}

/** The pages of `docs/` that `doorward help` shows, by name. */
export const helpTopics = {
  'getting-started': 'from nothing to a reviewed pull request',
  'setup-for-agents': 'how an agent program sets doorward up for you',
  webhooks: 'a webhook: its sender, its secret, filter and prompt',
  agents: 'the agents that answer: programs, models, servers',
  page: 'the page in the browser',
  mentions: 'a comment that names doorward, answered where it was written',
  'ci-failures': 'a failed build, explained on its pull request',
  fixes: 'an agent that opens a pull request with a fix',
  usage: 'what runs cost, in tokens and money',
  schedules: 'what runs at a time, without a webhook',
  approval: 'what you see, and say yes to, before an answer leaves',
  sources: 'a program or files of this machine as a source',
  workspaces: 'the code that an agent sees',
  sessions: 'one conversation over several events',
  targets: 'where answers go',
  providers: 'an OAuth client of your own, at each provider',
  google: 'Google: a login, mail, tokens for programs',
  slack: 'Slack: its events, and answers in a channel',
  telegram: 'Telegram: an agent that a bot of yours asks',
  'local-model': 'a model on your own machine',
  tokens: 'logins, and tokens for scripts, git and agents',
  networks: 'a proxy, and certificates of your own',
  bots: 'a GitHub App of your own, and its tokens',
  'several-machines': 'a receiver, workers, and NATS between them',
  containers: 'the daemon in a container',
  desktop: 'the tray, notifications, start at login, restart',
  commands: 'every command, and the exit codes',
  configuration: 'every key of the files',
  security: 'what doorward protects, and what it does not',
  attacks: 'attacks that are tried, and what holds them',
  privacy: 'what is stored, where, and what leaves the machine',
  extending: 'a provider, a scheme, an agent, a target of your own',
  troubleshooting: 'every error code: what it means, what to do',
} as const

export type HelpTopic = keyof typeof helpTopics

/** True for the name of a topic. */
export const isHelpTopic = (name: string): name is HelpTopic => Object.hasOwn(helpTopics, name)

/** The page of a topic, in Markdown. */
export const readHelpTopic = async (topic: HelpTopic): Promise<string> =>
  readFile(new URL(`docs/${topic}.md`, packageFolder), 'utf8')

/** The entry of an error code in `docs/troubleshooting.md`, by the code. */
export const troubleEntries = async (): Promise<ReadonlyMap<string, string>> => {
  const page = await readHelpTopic('troubleshooting')
  const entries = page.matchAll(/^### (`([a-z-]+)`\n[^]*?)(?=^#{1,3} |(?![^]))/gm)
  return new Map([...entries].map(([entry, , code = '']) => [code, entry]))
}
