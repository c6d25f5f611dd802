import { readFile } from 'node:fs/promises'
import { packageFolder } from '../shared/version.ts'

/** What `doorward help` explains besides commands: the pages of `docs/`, by their names. */
export const helpTopics = {
  'getting-started': 'from nothing to a comment on a pull request',
  webhooks: 'a webhook: its sender, its secret, filter and prompt',
  agents: 'who answers: programs, models, servers',
  targets: 'where answers go',
  providers: 'an OAuth client of your own, at each provider',
  google: 'Google: a login, mail, tokens for programs',
  slack: 'Slack: its events, and answers in a channel',
  'local-model': 'a model on your own machine',
  configuration: 'every key of the three files',
  security: 'what doorward protects, and what it does not',
  privacy: 'what is kept, where, and what leaves the machine',
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
