import { z } from 'zod'
import type { Agent } from '../agents/schema.ts'
import { isCliKind } from '../agents/clis.ts'
import { getToolLevel } from '../agents/tools.ts'
import { type BotSummary, botSlugForm } from '../api/bots.ts'
import { addEntry, addToMap, removeItem } from '../config-edit/add-entry.ts'
import { openConfig, type OpenConfig } from '../config-edit/open-config.ts'
import { listSecrets } from '../config/environment.ts'
import { DoorwardError } from '../errors.ts'
import { writeFileAtomic } from '../home/files.ts'
import { type Home, readSecretFile } from '../home/home.ts'
import { replaceSecret } from '../home/init-home.ts'
import { withConfigLock } from '../home/lock.ts'
import { toSchedulePath } from '../schedules/schedule.ts'
import { withBotEntry } from './bot-entry.ts'
import type { Fixer } from './fix-agent.ts'
import { withAgentOfName } from './new-agent.ts'
import { digestName, scheduleEntry } from './new-schedule.ts'
import { newWebhook, type NewWebhook } from './new-webhook.ts'
import { findPreset, type WebhookPreset } from './presets.ts'
import { findRuleRecipe } from './rule-recipes.ts'
import { brakesFor, type RecipeField, startRecipes } from './start-recipes.ts'
import { ruleEntry, webhookEntry } from './webhook-entry.ts'
import { findEntry, isBeside, withRecipe, writeEntry } from './write-webhook.ts'

/*
 * The first rule, as the page adds it: choices -> secrets into .env -> the rule into its file, with its brakes.
 */

const line = z.string().trim().max(4096).optional()

/** Body of `POST /webhooks`. With `print` nothing is written. */
export const addRecipeSchema = z.strictObject({
  recipe: z.string().max(100),
  /** The name of an agent, or the kind of a program that becomes one. */
  agent: z.string().min(1).max(100),
  /** The slug of the bot whose deliveries it takes; null for none. */
  bot: z.string().regex(botSlugForm, 'not the name of a bot').nullable().optional(),
  repo: line,
  folder: line,
  from: line,
  secret: line,
  appToken: line,
  botToken: line,
  print: z.literal(true).optional(),
})
export type AddRecipe = z.infer<typeof addRecipeSchema>

/** What was written, or would be. */
export type AddedRecipe = {
  /** `webhooks.yaml`, or `schedules.yaml`. */
  readonly file: string
  /** The path of its webhook, or `schedule:<name>`. */
  readonly path: string
  /** The name of the rule, where the webhook has rules. */
  readonly rule?: string
  readonly agent: string
  /** The lines of the rule. */
  readonly text: string
  /** What the agent got for it, or why it did not. */
  readonly note?: string
}

/** Adds the rule of a recipe, for GitHub in the entry of a bot; on any error nothing is written. Throws `usage`, `config-invalid`. */
export const addRecipe = async (
  home: Home,
  request: AddRecipe,
  bot?: BotSummary,
): Promise<AddedRecipe> => {
  const recipe = startRecipes.find(({ name }) => name === request.recipe)
  if (!recipe) throw new DoorwardError('usage', 'there is no such recipe')
  return withConfigLock(home, async () => {
    const isOfBot = bot && /^(github|ci)-/.test(request.recipe)
    const opened = async () => {
      const now = await openConfig(home)
      return isOfBot ? withBotEntry(now, bot) : now
    }
    const open = await opened()
    if (request.print) return write(home, open, request)
    const secrets = recipe.fields.flatMap((field) => secretOf(field, request, open.env))
    const before = await readSecretFile(home.env)
    try {
      for (const [name, value] of secrets) await replaceSecret(home, name, value)
      return await write(home, await opened(), request)
    } catch (error) {
      if (secrets.length > 0 && before !== undefined) await writeFileAtomic(home.env, before)
      throw error
    }
  })
}

/** A secret that was given, for its variable. Throws `usage` for one that is missing. */
const secretOf = (
  { name, label, env, isNeeded }: RecipeField,
  request: AddRecipe,
  known: NodeJS.ProcessEnv,
): [string, string][] => {
  const value = request[name] ?? ''
  const isKnown = env !== undefined && listSecrets([env], known).length > 0
  if (value === '' && isNeeded && !isKnown) throw new DoorwardError('usage', `${label}: missing`)
  if (value === '' || env === undefined) return []
  if (!/^[\x21-\x7e]+$/.test(value))
    throw new DoorwardError('usage', `${label}: a secret has no spaces and no other characters`)
  return [[env, value]]
}

const write = (home: Home, open: OpenConfig, request: AddRecipe): Promise<AddedRecipe> =>
  request.recipe === digestName
    ? writeSchedule(open, request)
    : writeWebhook(home, open, findPreset(request.recipe), request)

const writeWebhook = async (
  home: Home,
  opened: OpenConfig,
  preset: WebhookPreset,
  request: AddRecipe,
): Promise<AddedRecipe> => {
  const found = withTarget(opened, preset)
  const isFix = findRuleRecipe(preset.recipe)?.access === 'write'
  const fixer = isFix ? toFixer(found, request.agent) : undefined
  const name = fixer?.name ?? request.agent
  const open = await withAgentOfName(found, name, fixer?.kind ?? name)
  const agent = agentNamed(open, name)
  const { repo, from, bot } = request
  const options = {
    agent: name,
    ...(repo && { repo }),
    ...(from && { from: [from] }),
    ...(bot === null ? { bot: false as const } : bot !== undefined && { bot }),
  }
  const entry = preset.recipe ? findEntry(found, preset, options) : undefined
  const made = newWebhook(preset, { ...options, ...entry }, [...open.config.agents.keys()])
  const plain = findRuleRecipe(preset.recipe) ? withRecipe(made, preset, found, options) : made
  const webhook: NewWebhook = { ...plain, brakes: brakesFor(agent) }
  const isRule = isBeside(webhook, preset, found)
  const text = isRule ? ruleEntry(webhook, preset, 'review') : webhookEntry(webhook, preset)
  const answer = { file: 'webhooks.yaml', path: webhook.path, agent: name }
  if (request.print) return { ...answer, text: text.lines.join('\n') }
  const [old, gateway] = [opened.file('gateway').text, found.file('gateway').text]
  if (gateway !== old) await found.write('gateway', gateway)
  const { rule, equipment } = await writeEntry(home, found, { webhook, preset, fixer }).catch(
    async (error: unknown) => {
      if (gateway !== old) await found.write('gateway', old)
      throw error
    },
  )
  return {
    ...answer,
    text: text.lines.join('\n'),
    ...(rule !== undefined && { rule }),
    ...(equipment && { note: equipment.note }),
  }
}

/** An agent that answers in a chat needs the token of its bot as a target, in gateway.yaml. */
const withTarget = (open: OpenConfig, { feed }: WebhookPreset): OpenConfig => {
  const chat = feed?.['provider']
  if (chat !== 'slack' && chat !== 'telegram') return open
  const { targets } = (open.file('gateway').value ?? {}) as { targets?: Record<string, unknown> }
  if (targets?.[chat] !== undefined) return open
  const variable = `${chat.toUpperCase()}_BOT_TOKEN`
  const line = `${chat}: { token_env: ${variable} }`
  const value = { [chat]: { token_env: variable } }
  const text = addToMap(open.file('gateway').text, 'targets', { line, value })
  if (text !== undefined) return open.with('gateway', text)
  throw new DoorwardError('usage', `targets in gateway.yaml has no ${chat}`, {
    hint: `add ${line} there: doorward config edit gateway`,
  })
}

/** One that may write stays as it is; of another program there is a second agent, which may. */
const toFixer = ({ config }: OpenConfig, name: string): Fixer => {
  const agent = config.agents.get(name)
  const kind = agent?.kind ?? name
  if (agent?.kind === 'command' || (agent && mayWrite(agent))) return { name, kind }
  if (!isCliKind(kind) || kind === 'llm')
    throw new DoorwardError('usage', `an agent of kind ${kind} cannot change code`, {
      hint: 'choose claude, codex, gemini or opencode',
    })
  return { name: 'fixer', kind }
}

const mayWrite = (agent: Agent): boolean => 'tools' in agent && getToolLevel(agent) === 'write'

const agentNamed = ({ config }: OpenConfig, name: string): Agent => {
  const agent = config.agents.get(name)
  if (agent) return agent
  throw new DoorwardError('usage', `there is no agent ${name}`, { hint: 'choose another one' })
}

const writeSchedule = async (found: OpenConfig, request: AddRecipe): Promise<AddedRecipe> => {
  const open = await withAgentOfName(found, request.agent)
  const brakes = brakesFor(agentNamed(open, request.agent))
  const made = scheduleEntry(digestName, request.agent, { repo: request.folder ?? '' })
  const lines = [...made.lines, ...brakes.lines.map((one) => `  ${one}`)]
  const answer = {
    file: 'schedules.yaml',
    path: toSchedulePath(digestName),
    agent: request.agent,
    text: lines.join('\n'),
  }
  if (request.print) return answer
  const { text, value } = open.file('schedules')
  const { schedules } = (value ?? {}) as { schedules?: unknown[] | null }
  const expected = [...(schedules ?? []), { ...made.value, ...brakes.value }]
  const added = addEntry(text, 'schedules', { lines, expected })
  open.check('schedules', added.text)
  const before = found.file('agents').text
  const agents = open.file('agents').text
  if (agents !== before) await open.write('agents', agents)
  await open.write('schedules', added.text)
  return answer
}

/**
 * Removes one rule of a webhook; its entry too, where that has no other rule and belongs to no bot. Throws `usage`,
 * `webhook-not-found`.
 */
export const removeRule = async (home: Home, path: string, rule?: string): Promise<void> =>
  withConfigLock(home, async () => {
    const open = await openConfig(home)
    const name = path.startsWith('schedule:') ? 'schedules' : 'webhooks'
    const place = findPlace(open, path, rule)
    const text = removeItem(open.file(name).text, place)
    open.check(name, text)
    await open.write(name, text)
  })

const findPlace = (open: OpenConfig, path: string, rule?: string): (string | number)[] => {
  const { schedules } = (open.file('schedules').value ?? {}) as { schedules?: { name: string }[] }
  const schedule = (schedules ?? []).findIndex(({ name }) => toSchedulePath(name) === path)
  if (schedule !== -1) return ['schedules', schedule]
  const { webhooks } = (open.file('webhooks').value ?? {}) as { webhooks?: WrittenWebhook[] }
  const index = (webhooks ?? []).findIndex((one) => one.path === path)
  const webhook = webhooks?.[index]
  if (!webhook)
    throw new DoorwardError('webhook-not-found', `no webhook is defined at ${path}`, {
      hint: 'it was removed already',
    })
  if (rule === undefined && !webhook.rules) return ['webhooks', index]
  const number = (webhook.rules ?? []).findIndex(({ name }) => name === rule)
  if (number === -1)
    throw new DoorwardError('webhook-not-found', `${path} has no rule of this name`, {
      hint: 'it was removed already',
    })
  const isAlone = webhook.rules?.length === 1 && webhook.source?.app === undefined
  return isAlone ? ['webhooks', index] : ['webhooks', index, 'rules', number]
}

type WrittenWebhook = {
  readonly path: string
  readonly rules?: readonly { readonly name?: string }[]
  readonly source?: { readonly app?: string }
}
