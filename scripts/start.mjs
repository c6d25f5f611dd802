// `npm start`: from a fresh clone to a running gateway. Starts the daemon in the foreground, sends it one
// real GitHub event, signed as GitHub signs it, prints the result, and runs until Ctrl-C.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { styleText } from 'node:util'
import { root, setUp } from './setup.mjs'

const webhook = '/webhook/github'
const sample = 'github:pull_request.opened'
const shownLines = 4

const built = (...names) => join(root, 'dist', ...names)
const load = (...names) => import(pathToFileURL(built(...names)).href)
const say = (text = '') => process.stdout.write(`${text}\n`)
const bold = (text) => (process.stdout.isTTY ? styleText('bold', text) : text)

/** Prints a row of the report: a word on the left, the first lines of a text on the right. */
const row = (word, text) => {
  const lines = toPlainText(text).trimEnd().split('\n')
  const shown = lines
    .slice(0, shownLines)
    .map((line) => (line.length > 88 ? `${line.slice(0, 87)}…` : line))
  const more = lines.length - shownLines
  if (more > 0) shown.push(more === 1 ? '… 1 more line' : `… ${more} more lines`)
  shown.forEach((line, index) =>
    say(`  ${bold((index === 0 ? word : '').padEnd(9))} ${line}`.trimEnd()),
  )
}

const startDaemon = async () => {
  // In the foreground it stays after a `daemon restart` and waits for its successor.
  const child = spawn(process.execPath, [built('bin', 'doorward-daemon.cjs'), '--foreground'], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  // Stop it however this process exits, also when `| head` closes our output.
  process.on('exit', () => child.kill('SIGTERM'))
  process.stdout.on('error', () => process.exit(0))
  const ended = once(child, 'exit').then(([code]) => code ?? 1)
  const message = once(child, 'message').then(([value]) => value)
  const first = await Promise.race([message, ended])
  // It has printed itself why it cannot start.
  if (typeof first === 'number' || 'code' in first) process.exit(await ended)
  if (child.connected) child.disconnect()
  return { ended }
}

/** Runs a doorward command and returns its JSON, or undefined when it fails. */
const cli = async (...args) => {
  const child = spawn(process.execPath, [built('bin', 'doorward.cjs'), ...args, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  const [code] = await once(child, 'close')
  return code === 0 ? JSON.parse(text) : undefined
}

/** Waits until the event is finished. */
const untilFinished = async (client, id) => {
  const control = new AbortController()
  const stream = await client.open('/events/stream', { signal: control.signal })
  const readFinished = async () => {
    const event = await client.get(`/events/${id}`)
    return ['accepted', 'queued', 'running', 'delivering'].includes(event.state) ? undefined : event
  }
  try {
    let event = await readFinished()
    const changes = stream[Symbol.asyncIterator]()
    while (!event && !(await changes.next()).done) event = await readFinished()
    return event
  } finally {
    control.abort()
    stream.on('error', () => undefined)
  }
}

/** Why nothing can be sent; undefined when the webhook exists and runs the sample agent. */
const reasonNotToSend = async (client, home) => {
  const { webhooks } = await client.get('/webhooks')
  const found = webhooks.find(({ path }) => path === webhook)
  if (!found?.enabled || found.secret !== 'set')
    return `Your configuration has no enabled webhook ${webhook} with its secret set: nothing was sent.`
  const { loadConfig } = await load('shared', 'config', 'load.js')
  const { readEnvironment } = await load('shared', 'config', 'environment.js')
  const { agents } = await loadConfig(home, await readEnvironment(home))
  // An agent of the user may cost time and money, so a start does not run it.
  if (agents.get(found.agent)?.kind !== 'echo')
    return `${webhook} runs your agent ${found.agent}, so npm start sent nothing.`
  return undefined
}

const showOneEvent = async (client, home) => {
  const reason = await reasonNotToSend(client, home)
  if (reason) {
    say(reason)
    return
  }
  const sent = await cli('webhook', 'send', webhook, '--sample', sample, '--no-start')
  const event = sent && (await untilFinished(client, sent.id))
  if (!event) return
  row('sent', `${sample}, as GitHub would send it: ${(event.size / 1024).toFixed(1)} KB, signed`)
  row('verified', `${event.id} on ${event.webhook}\ndelivery ${event.deliveryId}`)
  row('prompt', event.prompt ?? `none: ${event.state}`)
  if (event.state === 'done')
    row('answer', `from agent ${event.agent}, in ${event.durations.agentMs} ms\n${event.result}`)
  else row(event.state, event.detail ?? event.code ?? '')
}

const printCommands = (rows) => {
  for (const [what, command] of rows) say(`  ${bold(what.padEnd(20))} ${command}`)
}

await setUp()
const { resolveHome } = await load('shared', 'home', 'home.js')
const { connect } = await load('shared', 'client', 'client.js')
const { toPlainText } = await load('shared', 'text.js')
const { version } = await load('shared', 'version.js')
const home = resolveHome()

const running = await connect(home).catch(() => undefined)
const started = running ? undefined : await startDaemon()
const client = running ?? (await connect(home))

say(
  `${bold(`doorward ${version}`)} ${running ? 'runs already' : 'runs'} at ${client.daemon.url}, home ${home.root.replace(homedir(), '~')}`,
)
say()
await showOneEvent(client, home)
const page = await client.post('/ui/link', {}).catch(() => undefined)
client.close()
say()
say(
  running
    ? 'It was running before and keeps running; npx doorward daemon stop stops it. Next:'
    : 'It runs until you press Ctrl-C. Next, in another terminal in this folder:',
)
printCommands([
  ['make your bot', 'npx doorward bot create github'],
  ['have it review', 'npx doorward webhook add github-review --agent claude'],
  ['open the tray', 'npx doorward tray'],
  // Works once, for five minutes; a daemon of an earlier version has none.
  ['open the page', page?.url ?? 'npx doorward open'],
])
if (started) process.exitCode = await started.ended
