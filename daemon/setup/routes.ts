import type { Router } from '@koa/router'
import { z } from 'zod'
import { isCliKind } from '../../shared/agents/clis.ts'
import { detectAgentClis, findProgram } from '../../shared/agents/detect.ts'
import { agentSchema } from '../../shared/agents/schema.ts'
import { type FoundAgents, maxSampleBytes, type TriedAgent } from '../../shared/api/setup.ts'
import { listSecrets } from '../../shared/config/environment.ts'
import type { Agent } from '../../shared/config/schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { addRecipe, addRecipeSchema, removeRule } from '../../shared/recipes/add-recipe.ts'
import { agentEntry, newAgent } from '../../shared/recipes/new-agent.ts'
import { startRecipes } from '../../shared/recipes/start-recipes.ts'
import { toPlainLine } from '../../shared/text.ts'
import { createInvoke } from '../agents/invoke.ts'
import type { RunProcess } from '../agents/orphans.ts'
import type { LiveConfig } from '../config/live-config.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { type SampleParts, sendSample } from './sample.ts'

/*
 * What the first page of a new user needs besides the rest of the API: the agents of this machine, the recipes of
 * rules, a rule added and removed again, and a sample.
 */

type SetupParts = SampleParts & {
  readonly home: Home
  readonly live: LiveConfig
  readonly run: RunProcess
  readonly oauth: OAuth
}

const agentQuestion = z.strictObject({ agent: z.string().min(1).max(100) })
const sampleQuestion = z.strictObject({
  path: z.string().max(1000),
  sample: z.string().max(200).optional(),
  /** JSON of one's own, sent as it is. */
  payload: z
    .string()
    .refine((text) => Buffer.byteLength(text) <= maxSampleBytes, `at most ${maxSampleBytes} bytes`)
    .optional(),
  /** In place of the repository of the sample. */
  repository: z.string().max(200).optional(),
})
const removedQuery = z.strictObject({
  path: z.string().max(1000),
  rule: z.string().max(100).optional(),
})

/** `GET /checks/agents` and its like. The guard has let in only the owner's own programs. */
export const setupRoutes = (parts: SetupParts): Router => {
  const { home, live, oauth } = parts
  const router = exactRouter()
  router.get('/checks/agents', async (ctx) => {
    ctx.body = await findAgents(parts)
  })
  router.post('/checks/agents', async (ctx) => {
    const { agent } = await readJsonBody(ctx, agentQuestion)
    const gone = new AbortController()
    ctx.res.once('close', () => gone.abort())
    ctx.body = await tryAgent(parts, agent, gone.signal)
  })
  router.get('/webhooks/recipes', (ctx) => {
    const { env } = live.current()
    const recipes = startRecipes.map(({ fields, ...recipe }) => ({
      ...recipe,
      fields: fields.map((field) => ({
        ...field,
        isSet: field.env !== undefined && listSecrets([field.env], env).length > 0,
      })),
    }))
    ctx.body = { recipes }
  })
  router.post('/webhooks', async (ctx) => {
    const request = await readJsonBody(ctx, addRecipeSchema)
    const { bot: slug, print } = request
    const bot =
      typeof slug === 'string'
        ? (await oauth.bots.list()).find(({ name }) => name === slug)
        : undefined
    ctx.body = await addRecipe(home, request, bot)
    if (print) return
    await live.reload()
    ctx.status = 201
  })
  router.delete('/webhooks', async (ctx) => {
    const { success, data } = removedQuery.safeParse({ ...ctx.query })
    if (!success) throw new DoorwardError('request-invalid', 'path: required, once')
    await removeRule(home, data.path, data.rule)
    await live.reload()
    ctx.status = 204
  })
  router.post('/webhooks/sample', async (ctx) => {
    ctx.body = await sendSample(parts, await readJsonBody(ctx, sampleQuestion))
    ctx.status = 202
  })
  return router
}

const findAgents = async ({ live }: SetupParts): Promise<FoundAgents> => {
  const { config, env } = live.current()
  const gh = await findProgram('gh', env['PATH'] ?? env['Path'] ?? '', env['PATHEXT'])
  return {
    programs: await detectAgentClis(env),
    agents: [...config.agents].map(([name, { kind }]) => ({ name, kind })),
    gh: gh !== undefined,
  }
}

const tryMs = 60_000
const question = 'This only tests whether you can be reached. Answer with the one word: ok'

/** Asks the agent for one word, as the daemon will ask it. Throws an `agent-…` error where there is no answer. */
const tryAgent = async (
  { live, home, run, oauth }: SetupParts,
  name: string,
  gone: AbortSignal,
): Promise<TriedAgent> => {
  const { config, env } = live.current()
  const agent: Agent = { ...(config.agents.get(name) ?? newProgram(name)), timeout: tryMs }
  const invoke = createInvoke({
    env,
    homeFolder: home.root,
    run,
    access: async (...asked) => oauth.access(...asked),
  })
  const startedAt = performance.now()
  let cost: number | undefined
  const { text } = await invoke(
    name,
    agent,
    {
      prompt: question,
      webhook: '/checks/agents',
      eventId: 'trial',
      used: ({ costUsd }) => (cost = costUsd),
    },
    gone,
  )
  const answer = toPlainLine(text.trim()).slice(0, 100)
  const ms = Math.round(performance.now() - startedAt)
  return { agent: name, answer, ms, ...(cost !== undefined && { costUsd: cost }) }
}

const newProgram = (kind: string): Agent => {
  if (isCliKind(kind)) return agentSchema.parse(agentEntry(newAgent(kind, kind, {})).value)
  throw new DoorwardError('usage', `there is no agent ${toPlainLine(kind)}`)
}
