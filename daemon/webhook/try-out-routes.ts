import type { Router } from '@koa/router'
import { explainSchema, learnSchema } from '../../shared/api.ts'
import { missingProgram } from '../../shared/config/detect-agents.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { nearest } from '../../shared/text.ts'
import { exactRouter } from '../http/exact-router.ts'
import { tryFile } from '../deliver/file.ts'
import type { LoopGuard } from '../deliver/loop-guard.ts'
import { readJsonBody } from '../http/read-json-body.ts'
import type { Setup } from '../setup.ts'
import { textOfValue } from '../text-of-value.ts'
import { explain } from './explain.ts'
import type { Learners } from './learners.ts'
import { lessonOf } from './lesson.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import type { SignatureHeaders } from './verify.ts'

export type TryOutParts = {
  readonly current: () => Setup
  readonly learners: Learners
  readonly loopGuard: Pick<LoopGuard, 'ownDetail'>
  readonly homeFolder: string
}

/** What shows a webhook before it is trusted: `POST /webhooks/explain` and `POST /webhooks/learn`. */
export const tryOutRoutes = (parts: TryOutParts): Router => {
  const { current, learners, loopGuard, homeFolder } = parts
  const router = exactRouter()
  // JSON in JSON: quotes and line breaks take twice the room.
  const maxBytes = () => 2 * current().maxBodyBytes + 64 * 1024

  router.post('/webhooks/explain', async (ctx) => {
    const { path, headers = {}, payload } = await readJsonBody(ctx, explainSchema, maxBytes())
    if (payload === undefined) throw new DoorwardError('request-invalid', 'payload: missing')
    const setup = current()
    const webhook = webhookAt(path, setup)
    const explanation = await explain(webhook, {
      headers: distinct(headers),
      bytes: bytesOf(payload),
      nowMs: Date.now(),
      loopGuard,
      tryFile: async (file) => tryFile(file, homeFolder),
    })
    const missing = await missingProgram(webhook.agent, setup.env)
    ctx.body = missing
      ? { ...explanation, agent: { ...explanation.agent, detail: notThere(missing) } }
      : explanation
  })
  router.post('/webhooks/learn', async (ctx) => {
    const gone = new AbortController()
    ctx.res.once('close', () => gone.abort())
    const { path, payload } = await readJsonBody(ctx, learnSchema, maxBytes())
    if (payload !== undefined) {
      ctx.body = lessonOf(path, payload)
      return
    }
    const { path: webhook } = webhookAt(path, current())
    ctx.body = await learners.wait(webhook, gone.signal)
  })
  return router
}

const notThere = ({ program, install }: { program: string; install: string }): string =>
  `${program} is not on the daemon's PATH; install it with: ${install}; if it is installed: doorward doctor`

const webhookAt = (path: string, { byPath, config }: Setup): ReadyWebhook => {
  const webhook = byPath.get(path)
  if (webhook) return webhook
  const isOff = config.webhooks.some(({ urlPaths }) => urlPaths.includes(path))
  throw new DoorwardError(
    'webhook-not-found',
    isOff ? 'this webhook is switched off' : 'there is no webhook at this path',
    {
      hint: isOff
        ? 'remove enabled: false from its entry in webhooks.yaml'
        : (nearest(path, [...byPath.keys()]) ?? 'doorward webhook list shows those there are'),
    },
  )
}

/**
 * Text is the body as it came; anything else is a payload that somebody wrote down for us. Throws
 * `payload-not-json` for one that is nested so deeply that it cannot be written.
 */
const bytesOf = (payload: unknown): Buffer =>
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
