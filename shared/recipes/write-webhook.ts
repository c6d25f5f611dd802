import { randomBytes } from 'node:crypto'
import { addEntry } from '../config-edit/add-entry.ts'
import { addRule } from '../config-edit/add-rule.ts'
import type { OpenConfig } from '../config-edit/open-config.ts'
import { listSecrets } from '../config/environment.ts'
import type { Config } from '../config/load.ts'
import { DoorwardError } from '../errors.ts'
import { writeFileAtomic } from '../home/files.ts'
import { type Home, readSecretFile } from '../home/home.ts'
import { addSecret } from '../home/init-home.ts'
import { toScheme } from '../signatures/described.ts'
import { secretFault } from '../signatures/secrets.ts'
import { findBotEntry, findBotOf, findRuleEntry, takesRules } from './bot-of.ts'
import { equipFixer, type Fixer } from './fix-agent.ts'
import { withAgentOfName } from './new-agent.ts'
import type { NewWebhook, WebhookAddOptions } from './new-webhook.ts'
import type { WebhookPreset } from './presets.ts'
import { equipReviewer } from './review-recipe.ts'
import { findRuleRecipe, writeRule } from './rule-recipes.ts'
import { ruleEntry, webhookEntry } from './webhook-entry.ts'

/**
 * Writes the secret before the entry, so that the webhook is never served without one, and its agent where that is
 * named like a program and missing.
 */
export const writeEntry = async (
  home: Home,
  found: OpenConfig,
  { webhook, preset, readOwnSecret, fixer }: ToWrite,
) => {
  const isRule = isBeside(webhook, preset, found)
  if (!isRule) refuseDouble(webhook.path, found)
  const open = await withAgentOfName(found, webhook.agent, fixer?.kind)
  const file = open.file('webhooks')
  const added = isRule ? withRule(open, webhook, preset) : withEntry(open, webhook, preset)
  open.check('webhooks', added.text)
  const equipment = await equip(webhook.agent, open, { preset, fixer, isNew: open !== found })
  if (equipment?.text !== undefined) open.check('agents', equipment.text)
  const agentsBefore = found.file('agents').text
  const agents = equipment?.text ?? open.file('agents').text
  const secret = await secretFor(webhook, preset, readOwnSecret, open)
  const before = await readSecretFile(home.env)
  const isNew = secret !== undefined && (await addSecret(home, webhook.secretEnv, secret))
  const verifyEnv = verifyEnvOf(webhook)
  const hasToken =
    verifyEnv !== undefined && (await addSecret(home, verifyEnv, randomBytes(16).toString('hex')))
  try {
    if (agents !== agentsBefore) await open.write('agents', agents)
    await open.write('webhooks', added.text)
  } catch (error) {
    if ((isNew || hasToken) && before !== undefined) await writeFileAtomic(home.env, before)
    if (agents !== agentsBefore) await open.write('agents', agentsBefore)
    throw error
  }
  const { rule } = added
  const isNewAgent = open !== found
  return { open, webhook, file, added, rule, secret, isNew, equipment, isNewAgent }
}

/** The rule of a recipe goes into an entry that has others, such as that of a bot. */
export const isBeside = (
  { path, rule }: NewWebhook,
  { recipe }: WebhookPreset,
  open: OpenConfig,
): boolean => {
  const isOfBot = recipe !== undefined && findBotOf(path, open) !== undefined
  return isOfBot || (rule !== undefined && takesRules(path, open))
}

const equip = async (
  agent: string,
  open: OpenConfig,
  { preset, fixer, isNew }: Pick<ToWrite, 'preset' | 'fixer'> & { readonly isNew: boolean },
) => {
  if (fixer) return equipFixer(agent, open, isNew)
  return preset.recipe === undefined ? undefined : equipReviewer(agent, open)
}

const withEntry = (open: OpenConfig, webhook: NewWebhook, preset: WebhookPreset) => {
  const { text, value: before } = open.file('webhooks')
  const { webhooks } = (before ?? {}) as { webhooks?: unknown[] | null }
  const { lines, value } = webhookEntry(webhook, preset)
  const rule = nameOf((value as { readonly rules?: readonly NamedRule[] }).rules?.[0])
  return { ...addEntry(text, 'webhooks', { lines, expected: [...(webhooks ?? []), value] }), rule }
}

type NamedRule = Readonly<Record<string, unknown>>

const nameOf = (rule: NamedRule | undefined): string | undefined => {
  const name = rule?.['name']
  return typeof name === 'string' ? name : undefined
}

/** In an entry with other rules, as that of a bot, which takes the deliveries of all its repositories. */
const withRule = (open: OpenConfig, webhook: NewWebhook, preset: WebhookPreset) => {
  const index = open.config.webhooks.findIndex(({ path }) => path === webhook.path)
  const names = (open.config.webhooks[index]?.rules ?? []).map(({ name }) => name)
  const [repository] = webhook.filter['repository.full_name'] ?? []
  const name = names.includes('review') ? `review-${repository?.split('/')[1] ?? '2'}` : 'review'
  const rule = ruleEntry(webhook, preset, name)
  return { ...addRule(open.file('webhooks').text, index, rule), rule: nameOf(rule.value) }
}

type ToWrite = {
  readonly webhook: NewWebhook
  readonly preset: WebhookPreset
  /** Asks the owner for the secret of the sender. */
  readonly readOwnSecret?: (() => Promise<string>) | undefined
  /** The agent of a recipe that changes code. */
  readonly fixer?: Fixer | undefined
}

/** The entry that gets the rule of a recipe: that of a bot, or of whole rules one that is there. */
export const findEntry = (open: OpenConfig, preset: WebhookPreset, options: WebhookAddOptions) =>
  (preset.scheme === 'github' ? findBotEntry(open, options) : undefined) ??
  (findRuleRecipe(preset.recipe) && findRuleEntry(open, preset.scheme, options))

/** The webhook with the rule of a recipe in place of its parts. */
export const withRecipe = (
  webhook: NewWebhook,
  { recipe = '' }: WebhookPreset,
  open: OpenConfig,
  { repo }: WebhookAddOptions,
): NewWebhook => {
  const { path, agent } = webhook
  const there = open.config.webhooks.find((known) => known.path === path)
  const taken = (there?.rules ?? []).flatMap(({ name }) => name ?? [])
  return { ...webhook, rule: writeRule(recipe, { agent, repo, bot: findBotOf(path, open), taken }) }
}

const refuseDouble = (path: string, { config, file }: OpenConfig): void => {
  const index = config.webhooks.findIndex((webhook) => webhook.path === path)
  if (index === -1) return
  const { line, file: name } = file('webhooks').problemAt(['webhooks', index, 'path'], '')
  throw new DoorwardError('usage', `a webhook ${path} already exists at ${name}:${line}`, {
    hint: `--path ${freePath(path, config)} adds another; doorward config edit webhooks changes that one`,
  })
}

/** The secret to write: read from the user, newly made where the sender takes ours, or undefined. */
const secretFor = async (
  { secretEnv }: NewWebhook,
  preset: WebhookPreset,
  readOwnSecret: ToWrite['readOwnSecret'],
  { env }: OpenConfig,
): Promise<string | undefined> => {
  if (preset.keyField === 'none') return undefined
  const isSet = listSecrets([secretEnv], env).length > 0
  if (!readOwnSecret)
    return isSet || preset.secret === 'theirs'
      ? undefined
      : randomBytes(preset.isShort ? 16 : 32).toString('hex')
  if (isSet)
    throw new DoorwardError('usage', `${secretEnv} is already set`, {
      hint: 'omit --secret-stdin to keep it, or name another variable with --secret-env',
    })
  const secret = await readOwnSecret()
  const scheme = toScheme(preset.scheme, {
    header: 'x-hub-signature-256',
    algorithm: 'sha256',
    prefix: 'sha256=',
  })
  const fault = secretFault(scheme, secret)
  if (fault)
    throw new DoorwardError('usage', `the secret ${fault.reason}`, {
      hint: `it must be ${preset.secretIs}`,
    })
  return secret
}

/** The variable with the verify token of Meta. */
export const verifyEnvOf = ({ fields }: NewWebhook): string | undefined => {
  const name = fields?.['verify_token_env']
  return typeof name === 'string' ? name : undefined
}

/** This path, or with the first number appended that makes it unused. */
export const freePath = (path: string, { webhooks }: Config): string => {
  const taken = new Set(webhooks.flatMap((webhook) => [webhook.path, ...webhook.urlPaths]))
  let free = path
  for (let number = 2; taken.has(free); number += 1) free = `${path}-${number}`
  return free
}
