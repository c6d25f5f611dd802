import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { type IncomingMessage, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { setTimeout as wait } from 'node:timers/promises'
import type { EventDetail, EventLink, EventRecord } from '../../shared/api/api.ts'
import { cliProgram, packageFolder } from '../../shared/version.ts'
import { type Delivery, deliveryOf, sign } from '../load/delivery.ts'
import { ask } from '../load/ask.ts'
import { postAtOnce } from '../load/pace.ts'
import { createSender } from '../load/sender.ts'
import { hasProgram } from '../machine.ts'
import { median } from '../quantile.ts'
import type { Column, Note } from '../report/sample.ts'
import { type Doorward, startDoorward } from '../servers/doorward.ts'
import { startAdnanh } from '../servers/peers.ts'
import type { Server } from '../servers/server.ts'
import { measureHistory } from './history.ts'
import { importFiles } from './workspace.ts'

/*
 * What people wait for: from an event to the first byte of its agent, the lists and the page while 1,000 events
 * are in memory, and the second review of a repository of 10,000 files.
 */

const run = promisify(execFile)

type Options = { readonly hasAdnanh: boolean; readonly isShort: boolean }

export const measureWaits = async (
  folder: string,
  { hasAdnanh, isShort }: Options,
  note: Note,
): Promise<void> => {
  const agent = await startAgent()
  const first = await deliveryOf('1 KB')
  const times = isShort ? 5 : 30
  const source = !isShort && (await hasProgram('git')) ? makeSource(folder) : undefined
  const doorward = await startDoorward({ first, ...definitions(agent.port, source) })
  try {
    await measureFirstBytes(doorward, agent, { column: 'doorward', times }, note)
    await measureApproval(doorward, times, note)
    if (!isShort) await measurePages(doorward, times, note)
    if (!isShort) await measureHistory(doorward, times, note)
    if (source !== undefined) await measureReviews(doorward, source, note)
  } finally {
    await doorward.stop()
  }
  if (hasAdnanh && !isShort) {
    const adnanh = await startAdnanh(folder, saysHello(agent.port), first)
    try {
      await measureFirstByte(adnanh.url, agent, 'program', { column: 'adnanh, runs', times }, note)
    } finally {
      await adnanh.stop()
    }
  }
  agent.close()
}

/** A program whose first byte arrives at this port. */
const saysHello = (port: number) => ['bash', '-c', `echo hello >/dev/tcp/127.0.0.1/${port}`]

const definitions = (port: number, source: string | undefined) => {
  const entry = (name: string, more = '') => `  - path: /webhook/${name}
    agent: ${name}
    signature_scheme: github
    secret_env: BENCH_SECRET
    prompt_template: "{{event.number}}"
${more}`
  const review = `    workspace: { repo: '${source}', ref: main, base: '{{event.base}}' }
    context: [diff, files]
    deliver_to: 'file:reviews.md'
`
  const server = `{ kind: http, url: "http://127.0.0.1:${port}/", concurrency: 4 }`
  return {
    webhooks:
      entry('program') +
      entry('http') +
      entry('unasked', "    deliver_to: 'file:unasked.md'\n") +
      entry('asked-for-mail', `    approve: { when: [email] }\n    deliver_to: 'file:asked.md'\n`) +
      (source === undefined ? '' : entry('review', review)),
    agents: `  program: { kind: command, command: ${JSON.stringify(saysHello(port))}, concurrency: 4 }
  http: ${server}
  review: ${server}
  unasked: { kind: echo }
  asked-for-mail: { kind: echo }
`,
    gateway: 'events: { keep: 1000 }\n',
  }
}

type AgentServer = {
  readonly port: number
  /** Resolves when the next byte of an agent arrives. */
  readonly untilHeard: () => Promise<void>
  readonly close: () => void
}

/** Answers whatever asks it, as an agent over HTTP; a program only has to connect and write. */
const startAgent = async (): Promise<AgentServer> => {
  let hear = (): void => undefined
  const server = createServer((request: IncomingMessage, response) => {
    request.resume().once('end', () => response.end('Looks good.'))
  })
  server.on('connection', (socket) => socket.once('data', () => hear()))
  // What the program writes is no HTTP.
  server.on('clientError', (_, socket) => socket.destroy())
  // A connection for each request, or a later one would not be heard.
  server.keepAliveTimeout = 1
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    untilHeard: async () => new Promise((resolve) => (hear = resolve)),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Whose figures they are, and how many posts are counted. */
type Pressure = { readonly column: Column; readonly times: number }

const measureFirstBytes = async (
  { origin }: Doorward,
  agent: AgentServer,
  how: Pressure,
  note: Note,
): Promise<void> => {
  for (const kind of ['program', 'http'])
    await measureFirstByte(`${origin}/webhook/${kind}`, agent, kind, how, note)
}

/** One post after the other, each when the one before is over. */
const measureFirstByte = async (
  url: Server['url'],
  { untilHeard }: AgentServer,
  kind: string,
  { column, times }: Pressure,
  note: Note,
): Promise<void> => {
  const sender = createSender(url, await deliveryOf('24 KB'))
  const took: number[] = []
  for (let count = 0; count < times + 3; count += 1) {
    const heard = untilHeard()
    const start = performance.now()
    const { status } = await sender.post()
    if (status !== 202 && status !== 200) throw new Error(`${url} answered ${status}`)
    await heard
    // The first runs compile the code.
    if (count >= 3) took.push(performance.now() - start)
    await wait(20)
  }
  sender.close()
  const row = 'event to the first byte of its agent'
  note({ row, measure: `${kind}, p50 ms`, column, value: median(took) })
}

/** What approval costs an answer that waits for none: by a rule without it, and by one that asks for mails alone. */
const measureApproval = async (doorward: Doorward, times: number, note: Note): Promise<void> => {
  const took: Record<string, number[]> = { unasked: [], 'asked-for-mail': [] }
  for (let count = 0; count < times * 2 + 3; count += 1)
    for (const [name, all] of Object.entries(took)) {
      const start = performance.now()
      await delivered(doorward, name, sign({ number: count, pull_request: {} }))
      // The first runs compile the code.
      if (count >= 3) all.push(performance.now() - start)
    }
  for (const [name, all] of Object.entries(took))
    note({
      row: 'post to the delivered answer',
      measure: `${name === 'unasked' ? 'without approve' : 'approve of another kind'}, p50 ms`,
      column: 'doorward',
      value: median(all),
    })
}

const measurePages = async (doorward: Doorward, times: number, note: Note): Promise<void> => {
  const sender = createSender(doorward.url, await deliveryOf('24 KB'))
  await postAtOnce(sender, { posts: 1000, callers: 8 })
  sender.close()
  const { origin, authorized } = doorward
  const read = async <Answer>(path: string, method = 'GET'): Promise<Answer> =>
    JSON.parse(await ask(`${origin}${path}`, authorized, method)) as Answer
  const list = async () => read<{ events: EventRecord[] }>('/events?limit=1000')
  const { events } = await list()
  const newest = events.find(({ kind }) => kind === 'webhook')?.id ?? ''
  const cli = fileURLToPath(new URL(cliProgram, packageFolder))
  const row = 'with 1,000 events'
  const time = async (measure: string, count: number, act: () => Promise<unknown>) => {
    const took: number[] = []
    for (let index = 0; index < count; index += 1) {
      const start = performance.now()
      await act()
      took.push(performance.now() - start)
    }
    note({ row, measure, column: 'doorward', value: median(took) })
  }
  await time('list ms', times, list)
  await time('status ms', times, async () => read('/status'))
  await time('page ms', times, async () => {
    const { url } = await read<EventLink>(`/events/${newest}/link`, 'POST')
    return ask(url)
  })
  const args = [cli, '--home', doorward.home.root, '--no-start', 'events', '--limit', '1000']
  await time('doorward events ms', 5, async () => run(process.execPath, args, { maxBuffer: 2e7 }))
}

const makeSource = (folder: string): string => {
  const source = join(mkdtempSync(join(folder, 'review-')), 'source.git')
  mkdirSync(source)
  execFileSync('git', ['--git-dir', source, 'init', '--quiet', '--bare'])
  importFiles(source, 1)
  return source
}

/** The whole way, to the delivered answer: the first makes the mirror, the second has a new commit of 100 files. */
const measureReviews = async (doorward: Doorward, source: string, note: Note): Promise<void> => {
  const head = () =>
    execFileSync('git', ['--git-dir', source, 'rev-parse', 'main'], { encoding: 'utf8' }).trim()
  let base = head()
  for (const [index, measure] of ['first ms', 'second ms'].entries()) {
    importFiles(source, index + 2)
    const start = performance.now()
    await delivered(doorward, 'review', sign({ number: 7, base, pull_request: {} }))
    note({
      row: 'review of a repository of 10,000 files',
      measure,
      column: 'doorward',
      value: performance.now() - start,
    })
    base = head()
  }
}

const delivered = async (
  { origin, authorized }: Doorward,
  name: string,
  { body, headers }: Delivery,
): Promise<void> => {
  const posted = await fetch(`${origin}/webhook/${name}`, {
    method: 'POST',
    headers: { ...headers, 'X-GitHub-Delivery': String(performance.now()) },
    body: Buffer.from(body),
  })
  const { id } = (await posted.json()) as { id: string }
  for (;;) {
    const text = await ask(`${origin}/events/${id}`, authorized)
    const { state, detail } = JSON.parse(text) as EventDetail
    if (state === 'done') return
    if (!['queued', 'running', 'delivering'].includes(state))
      throw new Error(`the event of ${name} is ${state}: ${detail}`)
    await wait(name === 'review' ? 5 : 1)
  }
}
