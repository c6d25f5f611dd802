import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import type { EventDetail } from '../../../shared/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { agentClis, cliKinds } from '../../../shared/agents/clis.ts'
import { needsSandbox, runsProgram, wantsSandbox } from '../../../shared/agents/tools.ts'
import { readEnvironment } from '../../../shared/config/environment.ts'
import type { Filter, ValueCondition } from '../../../shared/filter/conditions.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import type { Rule } from '../../../shared/config/rule.ts'
import { targetPaths } from '../../../shared/targets/targets.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { expandTilde, type Home } from '../../../shared/home/home.ts'
import { each, type Path } from '../../../shared/paths.ts'
import { pathsIn } from '../../../shared/templates.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { webhookAt } from '../../daemon-client/webhooks.ts'
import { exitFailed } from '../../exit-code.ts'
import { confirm } from '../../terminal/confirm.ts'
import { interruptSignal } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { untilFinished } from '../events/wait.ts'
import { postWebhook } from '../webhook/send.ts'
import { ownDelivery, signDelivery, type SigningHome } from '../webhook/signing.ts'
import { findText, type Found } from './find-text.ts'

/*
 * The privacy check: list what runs and what is sent, ask, send a canary through each webhook, wait for its
 * agent and targets, search the files that changed since, report.
 */

/** The outcome of the canary of one webhook. */
type Sent = {
  readonly path: string
  /** Name of the rule, where the webhook has rules. */
  readonly rule?: string
  readonly agent: string
  readonly targets: readonly string[]
  readonly event?: string
  readonly state: string
  readonly detail?: string
}

type FoundFile = { readonly path: string; readonly expected: boolean; readonly target?: string }

/** Some file systems store times in steps of one or two seconds (FAT). */
const clockMarginMs = 2000

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
  const signer = { env, publicUrl: gateway.server.public_url }
  const chosen = choose(webhooks, paths)
  const rules = chosen.flatMap(listRules)
  announce(rules, terminal)
  if (!yes && !(await confirm(permission, terminal))) {
    terminal.warn('nothing was run or sent')
    process.exitCode = exitFailed
    return
  }

  const canary = `doorward-canary-${randomBytes(16).toString('hex')}`
  const sinceMs = Date.now() - clockMarginMs
  const interrupt = interruptSignal()
  const sent = await withDaemon(context, async (client) => {
    const all: SentCanary[] = []
    for (const one of rules)
      all.push(await sendCanary(client, one, signer, canary, interrupt, terminal))
    return all
  })
  terminal.say('searching files that have changed since ...')
  const roots = listPlaces(home, chosen)
  const found = await findText(roots, canary, sinceMs)
  const files = await expectations(
    home,
    found.paths,
    sent.flatMap(({ events }) => events),
  )
  report(
    sent.map((one) => one.sent),
    files,
    found,
    roots,
    terminal,
  )
}

/** The webhooks at these paths, or all enabled ones, but for those whose target depends on the event. */
const choose = (webhooks: readonly Webhook[], paths: readonly string[]): Webhook[] => {
  const named = paths.map((path) => webhookAt(path, webhooks))
  for (const { path, enabled } of named)
    if (!enabled)
      throw new DoorwardError('usage', `webhook ${path} is not enabled`, {
        hint: 'set enabled: true, or name another',
      })
  const chosen = paths.length > 0 ? [...new Set(named)] : webhooks.filter(({ enabled }) => enabled)
  if (chosen.length === 0)
    throw new DoorwardError('usage', 'there is no enabled webhook to check', {
      hint: 'doorward config edit webhooks',
    })
  return chosen
}

type Chosen = { readonly webhook: Webhook; readonly rule: Rule }

const listRules = (webhook: Webhook): Chosen[] => webhook.rules.map((rule) => ({ webhook, rule }))

const describeChosen = ({ webhook: { path }, rule: { name } }: Chosen): string =>
  name === undefined ? path : `${path} ${name}`

const announce = (chosen: readonly Chosen[], terminal: Terminal): void => {
  if (terminal.json) return
  terminal.warn(
    'A made-up event goes through these webhooks. Their agents run and answer for real:',
  )
  for (const one of chosen)
    terminal.warn(
      toPlainLine(
        `  ${describeChosen(one)} -> agent ${one.rule.agentName} (${describeAction(one.rule.agent)}${describeSandbox(one.rule)}) -> ${listTargets(one.rule).join(', ') || 'none'}`,
      ),
    )
}

const describeAction = (agent: Rule['agent']): string => {
  switch (agent.kind) {
    case 'echo':
      return 'answers with the prompt'
    case 'command':
      return `runs ${agent.command.join(' ')}`
    case 'openai':
      return `asks ${agent.model} at ${new URL(agent.base_url).host}`
    case 'http':
      return `asks ${new URL(agent.url).host}`
    case 'claude':
    case 'codex':
    case 'gemini':
    case 'opencode':
    case 'llm':
      return ['runs', agentClis[agent.kind].program, ...(agent.args ?? [])].join(' ')
  }
}

const describeSandbox = ({ agent, workspace }: Rule): string => {
  if (!runsProgram(agent)) return ''
  if (!wantsSandbox(agent, workspace !== undefined)) return ', in no sandbox'
  return needsSandbox(agent) ? ', in a sandbox' : ', in a sandbox where there is one'
}

const permission = {
  question: 'Go on?',
  refusal: 'this runs agents and sends their answers, and there is no terminal to ask',
  interrupted: 'nothing was run or sent',
}

const listTargets = ({ targets }: Rule): string[] => targets.map(({ text }) => text)

type SentCanary = { readonly sent: Sent; readonly events: readonly EventDetail[] }

/** Sends an event that this rule matches; others of the same webhook may match it too. */
const sendCanary = async (
  client: Client,
  { webhook, rule }: Chosen,
  signer: SigningHome,
  canary: string,
  interrupt: AbortSignal,
  terminal: Terminal,
): Promise<SentCanary> => {
  const { path, rules } = webhook
  const { name, agentName: agent } = rule
  const about = {
    path,
    ...(name !== undefined && { rule: name }),
    agent,
    targets: listTargets(rule),
  }
  const isFixed = rules
    .flatMap(({ targets }) => targets)
    .every(({ kind, text }) => kind === 'file' || !text.includes('{{'))
  if (!isFixed) {
    const detail = `left out: where ${rules.length === 1 ? 'its answer' : 'an answer of its rules'} goes depends on the event`
    return { sent: { ...about, state: 'not sent', detail }, events: [] }
  }
  terminal.say(`${describeChosen({ webhook, rule })}: waiting for agent ${agent} ...`)
  try {
    const nowMs = Date.now()
    const kind = toKind(webhook.scheme, rule)
    const payload = Buffer.from(JSON.stringify(canaryPayload(rule, canary, kind?.fields)))
    const delivery = ownDelivery(webhook, payload, nowMs, kind?.event)
    const { headers, body, search } = signDelivery(webhook, signer, delivery, nowMs)
    const url = new URL(`${webhook.urlPaths[0] ?? path}${search}`, client.daemon.url)
    const posted = await postWebhook(url, { ...canaryHeaders(rule), ...headers }, body)
    const events: EventDetail[] = []
    for (const { id } of posted.events ?? [posted])
      events.push(await untilFinished(client, async () => Promise.resolve(id), interrupt))
    const event = events.find((one) => one.rule === name) ?? events[0]
    if (!event) throw new DoorwardError('internal', 'the daemon named no event')
    const { id, state, detail } = event
    // The output of a failed program may contain the prompt, so only the event shows it.
    const why = state === 'done' ? undefined : (event.code ?? detail)
    return { sent: { ...about, event: id, state, ...(why && { detail: why }) }, events }
  } catch (error) {
    if (!(error instanceof DoorwardError) || error.code === 'interrupted') throw error
    return { sent: { ...about, state: 'not sent', detail: error.message }, events: [] }
  }
}

/** The first event of `on`: its name for the header of the sender, and what its body says of it. */
const toKind = ({ event: places }: Webhook['scheme'], { on }: Rule) => {
  const [first] = on ?? []
  if (first === undefined || !places) return undefined
  const name = first.replace(/\.\*$/, '')
  const [event = name, ...action] = places.action === undefined ? [name] : name.split('.')
  const field = (path: string | undefined, value: string) =>
    path === undefined || value === '' ? [] : [[path.split('.'), value] as const]
  return {
    event,
    fields: [...field(places.field, event), ...field(places.action, action.join('.'))],
  }
}

/** Where an event could leave files: our home, the agents' folders, temporary folders. */
const listPlaces = (home: Home, webhooks: readonly Webhook[]): string[] => {
  const agents = webhooks.flatMap(({ rules }) => rules.map(({ agent }) => agent))
  const environments = [
    process.env,
    ...agents.map((agent) => ({
      ...process.env,
      ...('env' in agent ? plainValues(agent.env ?? {}) : {}),
    })),
  ]
  return [
    ...new Set([
      home.root,
      ...environments.flatMap((env) =>
        cliKinds.flatMap((kind) => agentClis[kind].stateFolders(env)),
      ),
      ...agents.flatMap((agent) =>
        'cwd' in agent && agent.cwd ? [resolve(home.root, expandTilde(agent.cwd))] : [],
      ),
      tmpdir(),
      '/dev/shm',
    ]),
  ].filter((place) => existsSync(place))
}

const plainValues = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => !/^(env|oauth):/.test(value)))

/** Separates the files of targets from leaks. */
const expectations = async (
  home: Home,
  paths: readonly string[],
  events: readonly EventDetail[],
): Promise<FoundFile[]> => {
  const written = new Map<string, string>()
  for (const { target } of events.flatMap(({ targets }) => targets))
    if (target.startsWith('file:')) {
      const path = resolve(home.root, expandTilde(target.slice('file:'.length)))
      written.set(await realpath(path).catch(() => path), target)
    }
  return paths.map((path) => {
    const target = written.get(path)
    return { path, expected: target !== undefined, ...(target !== undefined && { target }) }
  })
}

const report = (
  sent: readonly Sent[],
  files: readonly FoundFile[],
  { searched, unreadable }: Found,
  roots: readonly string[],
  terminal: Terminal,
): void => {
  const unchecked = sent.filter(({ state }) => state !== 'done')
  const unexpected = files.filter(({ expected }) => !expected)
  const ok = unchecked.length === 0 && unexpected.length === 0
  if (!ok) process.exitCode = exitFailed
  if (terminal.json) {
    terminal.printJson({
      ok,
      webhooks: sent,
      files,
      searched: { folders: roots, files: searched, unreadable },
    })
    return
  }
  for (const { path, rule, state, detail, event } of sent)
    terminal.print(
      toPlainLine(
        `${path}${rule === undefined ? '' : ` ${rule}`}: ${state}${detail === undefined ? '' : ` (${detail})`}${event === undefined ? '' : ` ${event}`}`,
      ),
    )
  for (const { path, target } of files)
    terminal.print(
      toPlainLine(target === undefined ? `found in ${path}` : `as expected in ${path} (${target})`),
    )
  const inAll = `${searched} changed files in ${roots.length} places searched`
  terminal.print(
    unexpected.length > 0
      ? `${inAll}: ${unexpected.length} of them ${unexpected.length === 1 ? 'holds' : 'hold'} the event, and no target was to write it there`
      : `${inAll}: the event is in none but those its targets were to write`,
  )
  if (unreadable > 0) terminal.say(`${unreadable} of them could not be read`)
  terminal.say('what a program compresses or encrypts cannot be looked into')
  for (const { path } of unchecked)
    terminal.say(`hint: ${path} was not checked to its end: doorward events`)
}

type Node = { [name: string]: unknown }

/**
 * A payload that passes the filter of a rule and puts the canary into its prompt, in every value of the
 * template. Values that a target uses are plain words.
 */
export const canaryPayload = (
  rule: Rule,
  canary: string,
  kind: readonly (readonly [path: Path, value: string])[] = [],
): Node => {
  const payload: Node = { doorward_canary: canary }
  for (const path of inPayload(pathsIn(rule.prompt))) put(payload, path, canary)
  for (const path of inPayload(rule.targets.flatMap(targetPaths)))
    put(payload, path, 'privacy-check')
  for (const [path, value] of kind) put(payload, path, value)
  for (const condition of conditionsToMeet(rule.filter))
    for (const path of inPayload([condition.path])) put(payload, path, sampleValue(condition))
  return payload
}

/** Headers that pass the filter of a rule. */
const canaryHeaders = (rule: Rule): Record<string, string> =>
  Object.fromEntries(
    conditionsToMeet(rule.filter).flatMap((condition) => {
      const [root, name] = condition.path
      const value = sampleValue(condition)
      return root === 'headers' && typeof name === 'string' && value !== null
        ? [[name, String(value)]]
        : []
    }),
  )

/** Conditions that make a filter match together. */
const conditionsToMeet = (filter: Filter): ValueCondition[] =>
  filter.flatMap((condition) => {
    if (condition.kind === 'value') return [condition]
    return condition.kind === 'any' ? conditionsToMeet(condition.filters[0] ?? []) : []
  })

/** A value that a condition accepts, as far as one can be made from it. */
const sampleValue = ({ tests }: ValueCondition): unknown => {
  for (const { operator, expected, isNegated } of tests) {
    const [first = ''] = expected
    if (operator === 'exists' && isNegated) return null
    if (isNegated || operator === 'exists') continue
    if (operator === 'above') return Number(first) + 1
    if (operator === 'below') return Number(first) - 1
    if (operator === 'glob') return first.replaceAll(/[*?]+/g, 'x')
    return operator === 'regex' ? first.replaceAll(/[\\^$]/g, '') : first
  }
  return 'privacy-check'
}

const inPayload = (paths: readonly Path[]): Path[] =>
  paths.filter(([root, ...path]) => root === 'event' && path.length > 0).map(([, ...path]) => path)

/** Lists are maps with numbers as keys here, so that paths work for both, but for those of a `[*]`. */
const put = (payload: Node, path: Path, value: unknown): void => {
  let node = payload
  const names = path.map((name) => (name === each ? '0' : name))
  for (const [position, name] of names.slice(0, -1).entries()) {
    const next = Object.hasOwn(node, name) ? node[name] : undefined
    const isList = path[position + 1] === each
    // What stood there as a text of its own is asked for deeper down as well.
    const inner =
      typeof next === 'object' && next !== null
        ? (next as Node)
        : makeNode(isList, next === undefined ? {} : { text: next })
    node[name] = inner
    node = inner
  }
  const last = names.at(-1) ?? ''
  if (typeof node[last] !== 'object' || node[last] === null) node[last] = value
}

const makeNode = (isList: boolean, map: Node): Node => (isList ? Object.assign([], map) : map)
