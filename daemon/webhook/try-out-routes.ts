import type { Router } from '@koa/router'
import {
  explainSchema,
  type Explanation,
  learnSchema,
  type RuleExplanation,
  testKeySchema,
} from '../../shared/api/explain.ts'
import { inspectProgram } from '../../shared/agents/program.ts'
import { describeSandboxOf, runsProgram } from '../../shared/agents/tools.ts'
import { inspectSandbox } from '../../shared/sandbox/warnings.ts'
import type { Agent } from '../../shared/config/schema.ts'
import type { Rule } from '../../shared/config/rule.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { didYouMean } from '../../shared/text.ts'
import { tryFile } from '../delivery/targets/file.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import { textOfValue } from '../util/payload-path.ts'
import type { CompiledWebhook } from './compiled-webhook.ts'
import type { Engine } from './engine.ts'
import { type DeliveryToExplain, explain } from './explain.ts'
import { type DeliveryWaiters, describePayload } from './payload-shape.ts'
import { getEventNames } from './rules/choose.ts'
import type { KeptPayloads } from './events/kept-payloads.ts'
import type { RemoteKeys } from './senders/remote-keys.ts'
import type { TestKeys } from './senders/test-keys.ts'
import type { SignatureHeaders } from './signatures/verify.ts'

type TryOutParts = {
  readonly current: () => Engine
  readonly learners: DeliveryWaiters
  readonly remoteKeys: RemoteKeys
  readonly testKeys: TestKeys
  readonly facts: DeliveryToExplain['facts']
  readonly payloads: Pick<KeptPayloads, 'get'>
  readonly homeFolder: string
}

/** Routes to try a webhook: `POST /webhooks/explain`, `/webhooks/learn` and `/webhooks/test-key`. */
export const tryOutRoutes = (parts: TryOutParts): Router => {
  const { current, learners, remoteKeys, testKeys, facts, payloads, homeFolder } = parts
  const router = exactRouter()
  // JSON within JSON: quotes and line breaks take twice the space.
  const maxBytes = () => 2 * current().maxBodyBytes + 64 * 1024

  router.post('/webhooks/explain', async (ctx) => {
    const {
      path,
      headers = {},
      payload,
      event,
    } = await readJsonBody(ctx, explainSchema, maxBytes())
    if ((payload === undefined) === (event === undefined))
      throw new DoorwardError('request-invalid', 'payload or event: one of them')
    const setup = current()
    const webhook = webhookAt(path, setup)
    const kept = event === undefined ? undefined : payloads.get(event, webhook.scheme)
    if (event !== undefined && !kept)
      throw new DoorwardError('event-not-found', 'its payload is no longer in memory', {
        hint: 'explain a sample',
      })
    const explanation = await explain(webhook, {
      headers: kept?.headers ?? distinct(headers),
      bytes: kept?.body.bytes ?? toBytes(payload),
      nowMs: Date.now(),
      remoteKeys,
      gateway: setup.config.gateway,
      facts,
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
  router.post('/webhooks/test-key', async (ctx) => {
    const { path, key } = await readJsonBody(ctx, testKeySchema)
    ctx.body = { id: testKeys.add(webhookAt(path, current()).path, key) }
  })
  router.post('/webhooks/learn', async (ctx) => {
    const gone = new AbortController()
    ctx.res.once('close', () => gone.abort())
    const { path, payload } = await readJsonBody(ctx, learnSchema, maxBytes())
    if (payload !== undefined) {
      const { scheme } = current().byPath.get(path) ?? {}
      const on = scheme && getEventNames(scheme, {}, payload)
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
): Promise<Pick<Explanation['agent'], 'detail' | 'unconfined' | 'sandbox'>> => {
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
  if (!sandbox) {
    const bounds = describeSandboxOf(agent, workspace !== undefined)
    return bounds === undefined ? {} : { sandbox: bounds }
  }
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
