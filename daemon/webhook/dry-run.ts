import type { KeyObject } from 'node:crypto'
import type { Router } from '@koa/router'
import {
  explainSchema,
  type Explanation,
  learnSchema,
  type RuleExplanation,
} from '../../shared/api-explain.ts'
import { inspectProgram } from '../../shared/agents/program.ts'
import { runsProgram } from '../../shared/agents/tools.ts'
import { inspectSandbox } from '../../shared/sandbox/warnings.ts'
import type { Agent, Gateway } from '../../shared/config/schema.ts'
import type { Rule } from '../../shared/config/rule.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { getKeySource } from '../../shared/signatures/scheme.ts'
import { didYouMean } from '../../shared/text.ts'
import { buildArgv } from '../agents/cli-presets.ts'
import { toParts } from '../delivery/format/parts.ts'
import type { LoopGuard } from '../delivery/loop-guard.ts'
import type { ResolvedTarget } from '../delivery/sender.ts'
import { tryFile } from '../delivery/targets/file.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import { textOfValue } from '../util/payload-path.ts'
import { checkRequest, expandWorkspace, type WorkspaceRequest } from '../workspace/request.ts'
import type { CompiledRule, CompiledWebhook } from './compiled-webhook.ts'
import type { Engine } from './engine.ts'
import { createScope, type EventScope } from './event-scope.ts'
import { explainFilter } from './rules/filter-explanation.ts'
import { loadMultipart } from './forms.ts'
import { isMultipart, type Payload } from './body.ts'
import { readPayload } from './parse.ts'
import { type DeliveryWaiters, describePayload } from './payload-shape.ts'
import { findHandshake } from './senders/handshakes.ts'
import type { RemoteKeys } from './senders/remote-keys.ts'
import { checkBodyTimestamp, getDeliveryId } from './delivery-id.ts'
import { markedPrompt } from './prompt.ts'
import {
  type EventKind,
  findMiss,
  getEventName,
  isNamed,
  readEventKind,
  toEventName,
} from './rules/choose.ts'
import { formatRate } from './rules/budgets.ts'
import { describeEmptyKey, expandKey, toCoalesced } from './rules/groups.ts'
import { mayRun, type RunRulesParts } from './rules/run.ts'
import { diagnoseWithBudget } from './signatures/diagnosis.ts'
import { expandTargets } from './targets.ts'
import { describePlace, hasSignature } from './signatures/token.ts'
import { type SignatureHeaders, type VerifiedBody, verify } from './signatures/verify.ts'

/** A delivery to explain, as if it arrived at `nowMs`. */
type LookedAt = {
  readonly headers: SignatureHeaders
  readonly bytes: Buffer
  readonly nowMs: number
  readonly loopGuard: Pick<LoopGuard, 'ownDetail'>
  readonly remoteKeys: RemoteKeys
  /** For the hosts that a login is for. */
  readonly gateway: Gateway
  readonly limits: Pick<RunRulesParts, 'groups' | 'budgets'>
  /** Throws why a file cannot be written. */
  readonly tryFile: (path: string) => Promise<void>
}

/**
 * A delivery without its effects: the stages of `pipeline.ts` up to the queue, each with its result, and
 * nothing run, sent, logged or remembered. Throws why a body cannot be parsed: `media-type-unsupported`,
 * `payload-not-json`, `body-too-large`.
 */
const explain = async (webhook: CompiledWebhook, look: LookedAt): Promise<Explanation> => {
  const { headers, bytes, nowMs, loopGuard, remoteKeys } = look
  const { scheme, rules } = webhook
  const remoteKey = await findRemoteKey(webhook, { headers, bytes, remoteKeys })
  const checked = checkSignature(webhook, headers, bytes, nowMs, remoteKey)
  if (isMultipart(headers['content-type']?.[0])) await loadMultipart()
  const payload = readPayload(checked.body, headers, scheme)
  const handshake = findHandshake(scheme, headers, payload)?.status
  const ownComment = handshake === undefined && loopGuard.ownDetail(payload) !== undefined
  const { signedId } = checked.body
  const id = getDeliveryId(scheme, headers, { payload, signedId, isSigned: true })?.id
  const scope = createScope(webhook, headers, payload, id, new Date(nowMs))
  const kind = readEventKind(scheme, headers, payload)
  const isPassedOver = handshake !== undefined || ownComment
  const explained = await Promise.all(
    rules.map(async (rule) => {
      const { matches, ...rest } = await explainRule(rule, scope, kind, look)
      return { ...rest, matches: matches && !isPassedOver }
    }),
  )
  const [shown] = [...explained.filter(({ matches }) => matches), ...explained]
  if (!shown) throw new DoorwardError('internal', 'a webhook without a rule')
  return {
    webhook: webhook.path,
    signature: checkTime(checked.signature, payload, webhook, nowMs),
    ...(handshake === undefined ? {} : { handshake }),
    ...(ownComment && { ownComment }),
    ...shown,
    ...(rules[0].name !== undefined && { rules: explained }),
  }
}

const explainRule = async (
  rule: CompiledRule,
  scope: EventScope,
  kind: EventKind | undefined,
  { gateway, tryFile, limits, nowMs }: LookedAt,
): Promise<RuleExplanation> => {
  const { name, on, coalesce } = rule
  const made = tryPrompt(rule, scope)
  return {
    ...(name !== undefined && { rule: name }),
    matches: findMiss(rule, kind, scope) === undefined,
    ...(on && {
      on: {
        expected: [...on],
        actual: kind ? toEventName(kind) : null,
        matches: isNamed(on, kind),
      },
    }),
    filter: explainFilter(scope, rule.filter),
    ...made,
    agent: describeAgent(rule),
    ...(coalesce && { coalesce: tryKey(expandKey(coalesce.key, scope)) }),
    ...explainBudget(rule, toCoalesced(rule, scope, new Date(nowMs)), limits),
    ...(rule.workspace && {
      workspace: tryWorkspace(expandWorkspace(rule.workspace, scope), gateway),
    }),
    targets: await tryTargets(expandTargets(rule.targets, scope), made.prompt, tryFile),
  }
}

const tryPrompt = (
  rule: Rule,
  scope: EventScope,
): Pick<RuleExplanation, 'prompt' | 'promptFault' | 'substituted'> => {
  try {
    return markedPrompt(rule, scope)
  } catch (error) {
    return { prompt: '', promptFault: describeRefusal(error), substituted: [] }
  }
}

const tryKey = (key: ReturnType<typeof expandKey>): RuleExplanation['coalesce'] =>
  typeof key === 'string' ? { detail: describeEmptyKey(key) } : { key: key.join('') }

const explainBudget = (
  rule: CompiledRule,
  coalesced: ReturnType<typeof toCoalesced>,
  limits: LookedAt['limits'],
): Pick<RuleExplanation, 'maxRuns'> => {
  const { maxRuns } = rule
  const left = limits.budgets.left(rule, performance.now())
  if (!maxRuns || left === undefined) return {}
  const isUsedUp = !mayRun(rule, coalesced, limits)
  return { maxRuns: { limit: formatRate(maxRuns), left, isUsedUp } }
}

/** The key that a sender publishes, or why there is none; undefined where it signs with a secret. */
type RemoteKey = KeyObject | DoorwardError | undefined

const findRemoteKey = async (
  { scheme }: CompiledWebhook,
  { headers, bytes, remoteKeys }: Pick<LookedAt, 'headers' | 'bytes' | 'remoteKeys'>,
): Promise<RemoteKey> => {
  const source = getKeySource(scheme)
  if (!source) return undefined
  try {
    return await remoteKeys.find(source, headers, bytes)
  } catch (error) {
    if (error instanceof DoorwardError) return error
    throw error
  }
}

const toLinePart = (remoteKey: RemoteKey): { readonly remoteKey?: KeyObject } =>
  !remoteKey || remoteKey instanceof DoorwardError ? {} : { remoteKey }

type Checked = { readonly signature: Explanation['signature']; readonly body: VerifiedBody }

const checkSignature = (
  webhook: CompiledWebhook,
  headers: SignatureHeaders,
  bytes: Buffer,
  nowMs: number,
  remoteKey: RemoteKey,
): Checked => {
  const { scheme, verifier } = webhook
  const found = (result: Explanation['signature']['result'], detail?: string) => ({
    scheme: scheme.name,
    result,
    ...(detail === undefined ? {} : { detail }),
  })
  // The caller is the owner: without a valid signature the rest is explained as if none were required.
  const unsigned = () => verify(bytes, {}, 'none', nowMs)
  const form = typeof verifier === 'string' ? undefined : verifier.at(-1)
  const line = { method: 'POST', url: webhook.urlPaths[0], ...toLinePart(remoteKey) }
  if (form && !scheme.forms.some((each) => hasSignature(each, headers, line))) {
    const detail = `there is no ${describePlace(form)}: a delivery without it is refused`
    return { signature: found('not-given', detail), body: unsigned() }
  }
  try {
    if (remoteKey instanceof DoorwardError) throw remoteKey
    const body = verify(bytes, headers, verifier, nowMs, line)
    return { signature: found(verifier === 'none' ? 'not-required' : 'valid'), body }
  } catch (error) {
    // A separate budget, so that a flood of refused deliveries does not affect the owner.
    const detail = describeRefusal(
      diagnoseWithBudget()(error, bytes, headers, webhook, nowMs, line),
    )
    return { signature: found('invalid', detail), body: unsigned() }
  }
}

/** The last part of verification, for a valid signature. */
const checkTime = (
  signature: Explanation['signature'],
  payload: Payload,
  { scheme }: CompiledWebhook,
  nowMs: number,
): Explanation['signature'] => {
  if (signature.result !== 'valid') return signature
  try {
    checkBodyTimestamp(payload, scheme, nowMs, scheme.lateSeconds)
    return signature
  } catch (error) {
    return { ...signature, result: 'invalid', detail: describeRefusal(error) }
  }
}

const describeRefusal = (error: unknown): string => {
  if (!(error instanceof DoorwardError)) throw error
  return error.localDetail ?? error.message
}

const describeAgent = ({ agentName, agent }: Rule): Explanation['agent'] => ({
  name: agentName,
  kind: agent.kind,
  ...argvIn(agent),
})

const argvIn = (agent: Rule['agent']): Pick<Explanation['agent'], 'argv'> => {
  switch (agent.kind) {
    case 'command':
      return { argv: [...agent.command] }
    case 'claude':
    case 'codex':
    case 'gemini':
    case 'opencode':
    case 'llm':
      return { argv: buildArgv(agent) }
    case 'echo':
    case 'openai':
    case 'http':
      return {}
  }
}

const tryWorkspace = (
  request: WorkspaceRequest,
  gateway: Gateway,
): RuleExplanation['workspace'] => {
  const { repo, ref, base } = request
  const named = { repo, ref, ...(base !== undefined && { base }) }
  try {
    checkRequest(request, gateway)
    return named
  } catch (error) {
    return { ...named, detail: describeRefusal(error) }
  }
}

const tryTargets = async (
  targets: readonly ResolvedTarget[],
  text: string,
  tryFile: LookedAt['tryFile'],
): Promise<Explanation['targets']> =>
  Promise.all(
    targets.map(async (target) => {
      try {
        if (target.kind === 'invalid') throw target.error
        if (target.kind === 'file') await tryFile(target.path)
        return { target: target.text, parts: toParts(target, text) }
      } catch (error) {
        return { target: target.text, parts: [], detail: describeRefusal(error) }
      }
    }),
  )

type TryOutParts = {
  readonly current: () => Engine
  readonly learners: DeliveryWaiters
  readonly loopGuard: Pick<LoopGuard, 'ownDetail'>
  readonly remoteKeys: RemoteKeys
  readonly limits: LookedAt['limits']
  readonly homeFolder: string
}

/** Routes to try a webhook: `POST /webhooks/explain` and `POST /webhooks/learn`. */
export const tryOutRoutes = (parts: TryOutParts): Router => {
  const { current, learners, loopGuard, remoteKeys, limits, homeFolder } = parts
  const router = exactRouter()
  // JSON within JSON: quotes and line breaks take twice the space.
  const maxBytes = () => 2 * current().maxBodyBytes + 64 * 1024

  router.post('/webhooks/explain', async (ctx) => {
    const { path, headers = {}, payload } = await readJsonBody(ctx, explainSchema, maxBytes())
    if (payload === undefined) throw new DoorwardError('request-invalid', 'payload: missing')
    const setup = current()
    const webhook = webhookAt(path, setup)
    const explanation = await explain(webhook, {
      headers: distinct(headers),
      bytes: toBytes(payload),
      nowMs: Date.now(),
      loopGuard,
      remoteKeys,
      gateway: setup.config.gateway,
      limits,
      tryFile: async (file) => tryFile(file, homeFolder),
    })
    const add = async <Part extends RuleExplanation>(part: Part): Promise<Part> => {
      const agent = setup.config.agents.get(part.agent.name)
      const { workspace } = webhook.rules.find(({ name }) => name === part.rule) ?? {}
      const faults = agent && (await explainStart(agent, workspace, setup.env, homeFolder))
      return { ...part, agent: { ...part.agent, ...faults } }
    }
    const { rules } = explanation
    ctx.body = {
      ...(await add(explanation)),
      ...(rules && { rules: await Promise.all(rules.map(add)) }),
    }
  })
  router.post('/webhooks/learn', async (ctx) => {
    const gone = new AbortController()
    ctx.res.once('close', () => gone.abort())
    const { path, payload } = await readJsonBody(ctx, learnSchema, maxBytes())
    if (payload !== undefined) {
      const { scheme } = current().byPath.get(path) ?? {}
      const on = scheme && getEventName(scheme, {}, payload)
      ctx.body = describePayload(path, payload, on)
      return
    }
    const { path: webhook } = webhookAt(path, current())
    ctx.body = await learners.wait(webhook, gone.signal)
  })
  return router
}

/** Why the agent cannot start, or would have no sandbox, and the way out. */
const explainStart = async (
  agent: Agent,
  workspace: Rule['workspace'],
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<Pick<Explanation['agent'], 'detail' | 'unconfined'>> => {
  if (!runsProgram(agent)) return {}
  const { program, faults } = await inspectProgram(agent, env, homeFolder)
  const [fault] = faults
  if (fault) {
    const isMissing = agent.kind !== 'command' && fault.code === 'agent-program-missing'
    const detail = isMissing
      ? `${program} is not on the daemon's PATH; ${fault.hint}; if it is installed: doorward doctor`
      : `it cannot start: ${fault.what}; ${fault.hint}`
    return { detail }
  }
  const sandbox = await inspectSandbox(agent, workspace, env, homeFolder)
  if (!sandbox) return {}
  const { what, hint, isRefused } = sandbox
  const words = `it ${what}; ${hint}`
  return isRefused ? { detail: words } : { unconfined: words }
}

const webhookAt = (path: string, { byPath, config }: Engine): CompiledWebhook => {
  const webhook = byPath.get(path)
  if (webhook) return webhook
  const isOff = config.webhooks.some(({ urlPaths }) => urlPaths.includes(path))
  throw new DoorwardError(
    'webhook-not-found',
    isOff ? 'this webhook is switched off' : 'there is no webhook at this path',
    {
      hint: isOff
        ? 'remove enabled: false from its entry in webhooks.yaml'
        : (didYouMean(path, [...byPath.keys()]) ?? 'doorward webhook list shows those there are'),
    },
  )
}

/**
 * A text is the raw body; any other value is a payload. Throws `payload-not-json` for a payload that is
 * nested too deeply to be written.
 */
const toBytes = (payload: unknown): Buffer =>
  Buffer.from(typeof payload === 'string' ? payload : textOfValue(payload ?? 'null'))

const distinct = (
  headers: Readonly<Record<string, string | readonly string[]>>,
): SignatureHeaders => {
  const byName = new Map<string, string[]>()
  for (const [name, values] of Object.entries(headers)) {
    const key = name.toLowerCase()
    byName.set(key, [...(byName.get(key) ?? []), ...[values].flat()])
  }
  return Object.assign(Object.create(null) as SignatureHeaders, Object.fromEntries(byName))
}
