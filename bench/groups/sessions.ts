import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../shared/version.ts'
import { send } from '../../test/support/servers/http.ts'
import { type ModelRequest, startModelServer } from '../../test/support/servers/model-server.ts'
import { startDaemon, untilFinished } from '../../test/support/daemon/daemon.ts'
import type { Note } from '../report/sample.ts'

/*
 * The second event about one pull request, with Claude Code itself: how many tokens its model reads, and how many of
 * them it has read before. The model is a server of the tests, which counts four characters as a token.
 */

export const sessionRow = 'second turn on a pull request'

const programs = fileURLToPath(new URL('test/agent-clis/node_modules/.bin', packageFolder))
const charactersOfToken = 4
/** A diff of some 400 lines. */
const diff = Array.from({ length: 400 }, (_, line) => `+ const value${line} = read(${line * 7})`)

export const measureSessions = async (folder: string, note: Note): Promise<void> => {
  if (!existsSync(join(programs, 'claude')))
    return console.error(`${sessionRow} is left out: claude of test/agent-clis is not installed`)
  const model = await startModelServer()
  const answer = 'The change is fine, but for the name of value 12. '.repeat(20)
  model.behave({ kind: 'answers', text: answer, usage: countTokens })
  const entry = (name: string, more: string) =>
    `  - { path: /${name}, agent: claude, max_value_length: 50000, prompt_template: "{{event.text}}"${more} }\n`
  const daemon = await startDaemon({
    agents: `agents:\n  claude: { kind: claude, sandbox: 'off', env: { ANTHROPIC_BASE_URL: "${model.origin}", ANTHROPIC_API_KEY: "env:BENCH_KEY" } }\n`,
    webhooks: `webhooks:\n${entry('with', ', session: "{{event.thing}}"')}${entry('without', '')}`,
    gateway: 'oauth: { callback_port: 0 }\n',
    env: 'BENCH_KEY=key\n',
    variables: { HOME: folder, PATH: [programs, process.env['PATH']].join(delimiter) },
  })
  const post = async (path: string, text: string) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ thing: 'acme/shop#1', text })
    const reply = await send(`${daemon.url}${path}`, { headers, body })
    const { state, detail, usage } = await untilFinished(daemon, String(reply.json()['id']))
    if (state !== 'done') throw new Error(`${sessionRow}: ${state}: ${detail}`)
    return usage
  }
  try {
    for (const path of ['/with', '/without']) {
      await post(path, `Review this change:\n${diff.join('\n')}`)
      // Without a conversation the diff has to be in the second prompt too.
      const again =
        path === '/with' ? '' : `The change was:\n${diff.join('\n')}\nYou said: ${answer}\n`
      const usage = await post(path, `${again}The author asks: why value 12?`)
      const { inputTokens = 0, cachedTokens = 0 } = usage ?? {}
      const name = path === '/with' ? 'with session' : 'without'
      const figure = (measure: string, value: number) =>
        note({ row: sessionRow, measure: `${name}, ${measure}`, column: 'doorward', value })
      figure('tokens', inputTokens)
      figure('% from the cache', (100 * cachedTokens) / Math.max(1, inputTokens))
    }
  } finally {
    await daemon.stop()
    model.close()
  }
  return undefined
}

/** A cache of prompts has what a request has in common with the one before it, from its beginning. */
const countTokens = (requests: readonly ModelRequest[]): Readonly<Record<string, number>> => {
  const [text = '', before = ''] = requests.slice(-2).toReversed().map(toPrompt)
  let same = 0
  while (same < text.length && text[same] === before[same]) same += 1
  const cached = Math.floor(same / charactersOfToken)
  return {
    input_tokens: Math.ceil(text.length / charactersOfToken) - cached,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
  }
}

/** Tools, system prompt and messages, in the order of the cache; marks of the cache are not text. */
const toPrompt = ({ body }: ModelRequest): string => {
  const { tools, system, messages } = JSON.parse(body) as Record<string, unknown>
  return JSON.stringify([tools, system, messages], (key, value: unknown) =>
    key === 'cache_control' ? undefined : value,
  )
}
