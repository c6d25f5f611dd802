import { randomBytes } from 'node:crypto'
import type { EventDetail, SessionList } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { readEnvironment } from '../../../shared/config/environment.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import type { Rule } from '../../../shared/config/rule.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { webhookAt } from '../../daemon-client/webhooks.ts'
import { exitFailed } from '../../exit-code.ts'
import { confirm } from '../../terminal/input.ts'
import { interruptSignal } from '../../terminal/spinner.ts'
import { untilFinished } from '../events/wait.ts'
import { postWebhook } from '../webhook/send.ts'
import { ownDelivery, signDelivery, type SigningHome } from '../../../shared/signing/signing.ts'
import {
  canaryHeaders,
  canaryPayload,
  findText,
  listPlaces,
  listWritten,
  toKind,
} from './canary.ts'

/** Some file systems store times in steps of one or two seconds (FAT). */
const clockMarginMs = 2000

type Sent = {
  readonly path: string
  /** Name of the rule, where the webhook has rules. */
  readonly rule?: string | undefined
  readonly agent: string
  readonly targets: readonly string[]
  readonly event?: string
  readonly state: string
  readonly detail?: string | undefined
}

/**
 * Sends a canary through webhooks, agents and targets, and reports each file that contains it. Exit code 1
 * if a file other than a target's does, or if a webhook could not be checked. Throws `usage` without a
 * terminal and without `--yes`.
 */
export const checkPrivacy = async (
  context: Context,
  paths: readonly string[],
  yes: boolean,
): Promise<void> => {
  const { home, terminal } = context
  const env = await readEnvironment(home)
  const { webhooks, gateway } = await loadConfig(home, env)
  const chosen = choose(webhooks, paths)
  const rules = chosen.flatMap((webhook) => webhook.rules.map((rule) => ({ webhook, rule })))
  const about = rules.map(({ webhook, rule: { name, agentName, agent, targets } }) => {
    const from = [webhook.path, name].filter(Boolean).join(' ')
    const what = agent.kind === 'command' ? agent.command.join(' ') : agent.kind
    const answers = targets.map(({ text }) => text).join(', ') || 'none'
    return `  ${from} -> agent ${agentName} (${what}) -> ${answers}`
  })
  if (!terminal.json)
    for (const line of [permission.announcement, ...about]) terminal.warn(toPlainLine(line))
  if (!yes && !(await confirm(permission, terminal))) {
    terminal.warn(permission.interrupted)
    process.exitCode = exitFailed
    return
  }
  const canary = `doorward-canary-${randomBytes(16).toString('hex')}`
  const sinceMs = Date.now() - clockMarginMs
  const sender = { env, publicUrl: gateway.server.public_url, canary, interrupt: interruptSignal() }
  const folders = listPlaces(home, chosen)
  const sent: { sent: Sent; events: readonly EventDetail[] }[] = []
  const {
    paths: found,
    searched,
    unreadable,
  } = await withDaemon(context, async (client) => {
    for (const one of rules) {
      terminal.say(toPlainLine(`${one.webhook.path}: waiting for agent ${one.rule.agentName} ...`))
      sent.push(await sendCanary(client, one, sender))
    }
    terminal.say('searching files that have changed since ...')
    // A conversation is forgotten after the search, which would not find its file otherwise.
    const result = await findText(folders, canary, sinceMs)
    await forgetSessions(
      client,
      sent.flatMap(({ events }) => events),
    )
    return result
  })
  const events = sent.flatMap((one) => one.events)
  const written = await listWritten(home, events)
  const files = found.map((path) => {
    const target = written.get(path)
    return { path, expected: target !== undefined, ...(target !== undefined && { target }) }
  })
  const outcomes = sent.map((one) => one.sent)
  report(context, outcomes, files, { folders, files: searched, unreadable })
}

/** The conversations that the canary began: they would be kept for days. */
const forgetSessions = async (client: Client, events: readonly EventDetail[]): Promise<void> => {
  if (!events.some(({ session }) => session)) return
  const { sessions } = await client.get<SessionList>('/sessions')
  for (const { id, event } of sessions)
    if (events.some((one) => one.id === event)) await client.delete(`/sessions/${id}`)
}

/** The webhooks at these paths, or all enabled ones. */
const choose = (webhooks: readonly Webhook[], paths: readonly string[]): Webhook[] => {
  const named = [...new Set(paths.map((path) => webhookAt(path, webhooks)))]
  const off = named.find(({ enabled }) => !enabled)
  if (off)
    throw new DoorwardError('usage', `webhook ${off.path} is not enabled`, {
      hint: 'set enabled: true, or name another',
    })
  const chosen = paths.length > 0 ? named : webhooks.filter(({ enabled }) => enabled)
  if (chosen.length > 0) return chosen
  throw new DoorwardError('usage', 'there is no enabled webhook to check', {
    hint: 'doorward config edit webhooks',
  })
}

const permission = {
  announcement:
    'A made-up event goes through these webhooks. Their agents run and answer for real:',
  question: 'Go on?',
  refusal: 'this runs agents and sends their answers, and there is no terminal to ask',
  interrupted: 'nothing was run or sent',
}

/** Sends an event that this rule matches; others of the same webhook may match it too. */
const sendCanary = async (
  client: Client,
  { webhook, rule }: { readonly webhook: Webhook; readonly rule: Rule },
  { canary, interrupt, ...home }: SigningHome & { canary: string; interrupt: AbortSignal },
): Promise<{ readonly sent: Sent; readonly events: readonly EventDetail[] }> => {
  const { path, rules } = webhook
  const targets = rule.targets.map(({ text }) => text)
  const about = { path, rule: rule.name, agent: rule.agentName, targets }
  const events: EventDetail[] = []
  try {
    const others = rules.flatMap((one) => one.targets).filter(({ kind }) => kind !== 'file')
    if (others.some(({ text }) => text.includes('{{')))
      throw new DoorwardError('usage', 'left out: where an answer goes depends on the event')
    const kind = toKind(webhook.scheme, rule)
    const payload = Buffer.from(JSON.stringify(canaryPayload(rule, canary, kind?.fields)))
    const delivery = ownDelivery(webhook, payload, Date.now(), kind?.event)
    const { headers, body, search } = signDelivery(webhook, home, delivery, Date.now())
    const url = new URL(`${webhook.urlPaths[0] ?? path}${search}`, client.daemon.url)
    const posted = await postWebhook(url, { ...canaryHeaders(rule), ...headers }, body)
    for (const { id } of posted.events ?? [posted])
      events.push(await untilFinished(client, async () => Promise.resolve(id), interrupt))
    const event = events.find((one) => one.rule === rule.name) ?? events[0]
    if (!event) throw new DoorwardError('internal', 'the daemon named no event')
    const { id, state } = event
    // The output of a failed program may contain the prompt, so only the event shows it.
    return {
      sent: {
        ...about,
        event: id,
        state,
        detail: state === 'done' ? undefined : (event.code ?? event.detail),
      },
      events,
    }
  } catch (error) {
    if (!(error instanceof DoorwardError) || error.code === 'interrupted') throw error
    return { sent: { ...about, state: 'not sent', detail: error.message }, events }
  }
}

type FoundFile = { readonly path: string; readonly expected: boolean; readonly target?: string }

const report = (
  { terminal }: Context,
  sent: readonly Sent[],
  files: readonly FoundFile[],
  searched: { folders: readonly string[]; files: number; unreadable: number },
): void => {
  const unchecked = sent.filter(({ state }) => state !== 'done')
  const leaks = files.filter(({ expected }) => !expected).length
  const ok = unchecked.length === 0 && leaks === 0
  if (!ok) process.exitCode = exitFailed
  if (terminal.json) return terminal.printJson({ ok, webhooks: sent, files, searched })
  const all = `${searched.files} changed files in ${searched.folders.length} places searched`
  const lines = [
    ...sent.map(({ path, rule, state, detail, event }) => {
      const why = detail === undefined ? '' : ` (${detail})`
      return `${[path, rule].filter(Boolean).join(' ')}: ${state}${why} ${event ?? ''}`.trimEnd()
    }),
    ...files.map(({ path, target }) =>
      target === undefined ? `found in ${path}` : `as expected in ${path} (${target})`,
    ),
    leaks === 0
      ? `${all}: the event is in none but those of targets`
      : `${all}: ${leaks} contain the event, and no target wrote it there`,
  ]
  for (const line of lines) terminal.print(toPlainLine(line))
  if (searched.unreadable > 0) terminal.say(`${searched.unreadable} files could not be read`)
  terminal.say('files that a program compresses or encrypts cannot be searched')
  for (const { path } of unchecked)
    terminal.say(`hint: ${path} was not checked to its end: doorward events`)
}
