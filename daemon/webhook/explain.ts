import type { Explanation, RuleExplanation } from '../../shared/api/explain.ts'
import type { Gateway } from '../../shared/config/schema.ts'
import type { Rule } from '../../shared/config/rule.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { isOutputsKind } from '../../shared/targets/schema.ts'
import { buildArgv } from '../agents/cli-presets.ts'
import { type LinkHosts, toLinkHosts } from '../delivery/format/links.ts'
import { toParts } from '../delivery/format/parts.ts'
import { describeEach } from '../delivery/outputs/describe.ts'
import { toGitOrigin } from '../delivery/targets/github/github-api.ts'
import { gitlabApiUrl } from '../delivery/targets/gitlab/gitlab.ts'
import type { ResolvedTarget } from '../delivery/sender.ts'
import { checkRequest, expandWorkspace, type WorkspaceRequest } from '../workspace/request.ts'
import type { CompiledRule, CompiledWebhook } from './compiled-webhook.ts'
import { decide, type Facts, mayRun } from './decide.ts'
import {
  checkBodyTimestamp,
  type EventScope,
  type ReadDelivery,
  readDelivery,
} from './read-delivery.ts'
import { requireBodyOfEvent } from './event-name.ts'
import { loadMultipart } from './forms.ts'
import { isMultipart } from './body.ts'
import { findMentionMiss } from './mentions/comment.ts'
import { markedPrompt } from './prompt.ts'
import { formatRate, type RunBudgets } from './rules/budgets.ts'
import {
  explainFilter,
  findMiss,
  isNamed,
  readEventKinds,
  showEventNames,
  toEventName,
} from './rules/choose.ts'
import { describeEmptyKey, expandKey } from './rules/groups.ts'
import { prove, type ToProve } from './senders/prove.ts'
import type { RemoteKeys } from './senders/remote-keys.ts'
import { diagnoseWithBudget } from './signatures/diagnosis.ts'
import { hasSignature, type Proof } from './signatures/header.ts'
import { describePlace } from './signatures/token.ts'
import { type SignatureHeaders, type VerifiedBody, verify } from './signatures/verify.ts'
import { expandEach } from './targets.ts'

/** A delivery to explain, as if it arrived at `nowMs`. */
export type DeliveryToExplain = {
  readonly headers: SignatureHeaders
  readonly bytes: Buffer
  readonly nowMs: number
  readonly remoteKeys: RemoteKeys
  /** For the hosts that a login is for. */
  readonly gateway: Gateway
  readonly facts: Facts & { readonly budgets: RunBudgets }
  /** Throws why a file cannot be written. */
  readonly tryFile: (path: string) => Promise<void>
}

/**
 * A delivery without its effects: what `decide` says of it, with each rule, and nothing run, sent, logged or
 * remembered. Throws why a body cannot be parsed: `media-type-unsupported`, `payload-not-json`,
 * `body-too-large`.
 */
export const explain = async (
  webhook: CompiledWebhook,
  given: DeliveryToExplain,
): Promise<Explanation> => {
  const { headers, bytes, nowMs, remoteKeys } = given
  const proof = await tryProve(webhook, { headers, bytes, nowMs, remoteKeys })
  const { signature, body } = checkSignature(webhook, headers, bytes, nowMs, proof)
  if (isMultipart(headers['content-type']?.[0])) await loadMultipart()
  const receivedAt = new Date(nowMs)
  const verified = { webhook, headers, receivedAt, body, signed: true, source: undefined }
  const read = readDelivery(verified)
  const decision = decide(read, given.facts, performance.now())
  const runsNothing = decision.kind === 'handshake' || decision.kind === 'own'
  const explained = await Promise.all(
    webhook.rules.map(async (rule) => {
      const { matches, ...rest } = await explainRule(rule, read, given)
      return { ...rest, matches: matches && !runsNothing }
    }),
  )
  const [shown] = [...explained.filter(({ matches }) => matches), ...explained]
  if (!shown)
    throw new DoorwardError('config-invalid', `${webhook.path} has no rule yet: it runs nothing`, {
      hint: 'add one: doorward config edit webhooks',
      about: { webhook: webhook.path },
    })
  return {
    webhook: webhook.path,
    signature: checkRest(signature, read, nowMs),
    ...(decision.kind === 'handshake' && { handshake: decision.handshake.status }),
    ...(decision.kind === 'own' && { ownComment: true }),
    ...(decision.kind === 'duplicate' && { duplicateOf: [...decision.of] }),
    ...shown,
    ...(shown.rule !== undefined && { rules: explained }),
  }
}

const explainRule = async (
  rule: CompiledRule,
  read: ReadDelivery,
  { gateway, tryFile, facts }: DeliveryToExplain,
): Promise<RuleExplanation> => {
  const { name, on, coalesce, maxRuns } = rule
  const { scope, webhook, headers, payload } = read
  const kinds = readEventKinds(webhook.scheme, headers, payload)
  const made = tryPrompt(rule, scope)
  const now = performance.now()
  const left = facts.budgets.left(rule, now)
  const overBudget = facts.spending?.over(rule)
  return {
    ...(name !== undefined && { rule: name }),
    matches: findMiss(rule, kinds, scope, webhook.scheme.name) === undefined,
    ...(rule.isPaused && { isPaused: true as const }),
    ...(rule.mention !== undefined && {
      mention: tryMention(rule.mention, webhook.scheme.name, payload),
    }),
    ...(on && {
      on: {
        expected: [...on],
        actual: showEventNames(kinds.map(toEventName)) ?? null,
        matches: isNamed(on, kinds),
      },
    }),
    filter: explainFilter(scope, rule.filter),
    ...made,
    agent: describeAgent(rule),
    ...(coalesce && { coalesce: tryKey(expandKey(coalesce.key, scope)) }),
    ...(maxRuns &&
      left !== undefined && {
        maxRuns: { limit: formatRate(maxRuns), left, isUsedUp: !mayRun(rule, read, facts, now) },
      }),
    ...(overBudget !== undefined && { overBudget }),
    ...(rule.workspace && {
      workspace: tryWorkspace(expandWorkspace(rule.workspace, scope), gateway),
    }),
    targets: await tryTargets(
      expandEach(rule.targets, scope),
      made.prompt,
      tryFile,
      (kind) =>
        toLinkHosts(
          kind.startsWith('gitlab')
            ? new URL(gateway.targets.gitlab.api_url ?? gitlabApiUrl).origin
            : toGitOrigin(gateway.targets.github.api_url),
          rule,
        ),
      rule,
    ),
  }
}

const tryMention = (mention: string, scheme: string, payload: unknown) => {
  const detail = findMentionMiss(mention, scheme, payload)
  return { expected: `@${mention}`, ...(detail !== undefined && { detail }) }
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

/** What `prove` finds, or why it finds nothing. */
const tryProve = async (
  { verifier }: CompiledWebhook,
  delivery: ToProve,
): Promise<Proof | DoorwardError | undefined> => {
  try {
    return await prove(verifier, delivery)
  } catch (error) {
    if (error instanceof DoorwardError) return error
    throw error
  }
}

type Checked = { readonly signature: Explanation['signature']; readonly body: VerifiedBody }

const checkSignature = (
  webhook: CompiledWebhook,
  headers: SignatureHeaders,
  bytes: Buffer,
  nowMs: number,
  proof: Proof | DoorwardError | undefined,
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
  const request = { method: 'POST', url: webhook.urlPaths[0] }
  const line = proof instanceof DoorwardError ? request : { ...request, proof }
  if (form && !scheme.forms.some((each) => hasSignature(each, headers, line))) {
    const detail = `there is no ${describePlace(form)}: a delivery without it is refused`
    return { signature: found('not-given', detail), body: unsigned() }
  }
  try {
    if (proof instanceof DoorwardError) throw proof
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
const checkRest = (
  signature: Explanation['signature'],
  read: ReadDelivery,
  nowMs: number,
): Explanation['signature'] => {
  const { payload, webhook } = read
  const { scheme } = webhook
  if (signature.result !== 'valid') return signature
  try {
    checkBodyTimestamp(payload, scheme, nowMs, scheme.lateSeconds)
    requireBodyOfEvent(read)
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
    case 'echo':
    case 'openai':
    case 'http':
      return {}
    default:
      return { argv: buildArgv(agent) }
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
  tryFile: DeliveryToExplain['tryFile'],
  hostsOf: (kind: ResolvedTarget['kind']) => LinkHosts,
  { outputs = {} }: Pick<Rule, 'outputs'>,
): Promise<Explanation['targets']> =>
  Promise.all(
    targets.map(async (target) => {
      try {
        if (target.kind === 'invalid') throw target.error
        if (target.kind === 'file') await tryFile(target.path)
        if (isOutputsKind(target.kind))
          return { target: target.text, parts: [...describeEach(outputs)] }
        return { target: target.text, parts: toParts(target, text, hostsOf(target.kind)) }
      } catch (error) {
        return { target: target.text, parts: [], detail: describeRefusal(error) }
      }
    }),
  )
