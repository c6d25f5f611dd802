import { randomBytes } from 'node:crypto'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { addSecret } from '../../../shared/home/init-home.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import { toScheme } from '../../../shared/signatures/described.ts'
import { secretFault } from '../../../shared/signatures/secrets.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'
import { addEntry, printEntry } from '../../config-edit/add-entry.ts'
import { addRule } from '../../config-edit/add-rule.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { type OpenConfig, openConfig } from '../../config-edit/open-config.ts'
import type { Context } from '../../context.ts'
import { withAgentOfName } from '../agent/add.ts'
import { reloadIfRunning } from '../daemon/reload.ts'
import { freePath } from '../../daemon-client/webhooks.ts'
import { readSecret, confirm } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { shellWord } from '../../terminal/format.ts'
import { tableLines } from '../../terminal/table.ts'
import { wrapWords } from '../../terminal/wrap.ts'
import { findPreset, type WebhookPreset } from './presets.ts'
import { newWebhook, type NewWebhook, type WebhookAddOptions } from './new-webhook.ts'
import { findBotEntry, findBotOf, findRuleEntry, takesRules } from './bot-of.ts'
import { chooseFixer, equipFixer, type Fixer } from './fix-agent.ts'
import { chooseReviewer, equipReviewer } from './review-recipe.ts'
import { findRuleRecipe, writeRule } from './rule-recipes.ts'
import { ruleEntry, webhookEntry } from './webhook-entry.ts'

/**
 * Adds a webhook to `webhooks.yaml` with a secret in `.env`, and prints what is left to do at the sender.
 * On any error nothing is written. Throws `usage`, `config-invalid`, `home-unusable`.
 */
export const addWebhook = async (
  context: Context,
  [given = '']: readonly string[],
  options: WebhookAddOptions,
): Promise<void> => {
  const { home, terminal } = context
  const preset = findPreset(given)
  const yes = options.yes ?? (await askConsent(preset, options, terminal))
  const recipe = findRuleRecipe(preset.recipe)
  const isFix = recipe?.access === 'write'
  const fixer = isFix ? await chooseFixer(await openConfig(home), options.agent) : undefined
  const asks = preset.recipe !== undefined && !isFix && !options.agent
  const reviewer = fixer?.name ?? (asks ? await askReviewer(home, terminal) : undefined)
  const written = await withConfigLock(home, async () => {
    const opened = await openConfig(home)
    const given = { ...options, ...(reviewer !== undefined && { agent: reviewer }), yes }
    const entry = preset.recipe ? findEntry(opened, preset, options) : undefined
    const chosen = { ...given, ...entry }
    const made = newWebhook(preset, chosen, [...opened.config.agents.keys()])
    const webhook = recipe ? withRecipe(made, preset, opened, options) : made
    if (!options.print) return writeEntry(home, opened, { webhook, preset, options, fixer })
    printEntry(terminal, { path: webhook.path }, webhookEntry(webhook, preset))
    return undefined
  })
  if (!written) return
  const { open, webhook, file, added, secret, isNew, equipment, isNewAgent } = written

  const taken = await reloadIfRunning(context)
  const hasSecret = preset.keyField !== 'none'
  const kept = hasSecret ? listSecrets([webhook.secretEnv], open.env)[0] : undefined
  const report: Report = {
    path: webhook.path,
    url: toWebhookUrl(webhook.path, open.config.gateway.server, taken?.url),
    agent: webhook.agent,
    ...(isNewAgent && { agentState: 'new' as const }),
    ...(equipment && { agentNote: equipment.note }),
    scheme: preset.scheme,
    ...(hasSecret && {
      secretEnv: webhook.secretEnv,
      secretState: isNew ? 'new' : kept === undefined ? 'unset' : 'kept',
    }),
    ...(options.showSecret && { secret: isNew ? secret : kept }),
    file: file.path,
    line: added.line,
    reloaded: taken !== undefined,
  }
  if (terminal.json) return terminal.printJson(report)
  for (const line of reportLines(report, home.env)) terminal.print(line)
  taken?.tell()
  const isPublic = open.config.gateway.server.public_url !== undefined
  terminal.say(
    nextSteps(
      report,
      {
        preset,
        hasConsent: yes,
        verifyEnv: verifyEnvOf(webhook),
        bot: findBotOf(webhook.path, open),
      },
      home.env,
      isPublic,
      terminal.columns,
    ),
  )
}

const askReviewer = async (home: Home, terminal: Terminal): Promise<string> =>
  chooseReviewer(await openConfig(home), terminal)

/** The entry that gets the rule of a recipe: that of a bot, or of whole rules one that is there. */
const findEntry = (open: OpenConfig, preset: WebhookPreset, options: WebhookAddOptions) =>
  (preset.scheme === 'github' ? findBotEntry(open, options) : undefined) ??
  (findRuleRecipe(preset.recipe) && findRuleEntry(open, preset.scheme, options))

const withRecipe = (
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

/** Asks on a terminal; elsewhere only `--yes` is a consent. */
const askConsent = async (
  { consent }: WebhookPreset,
  { print }: WebhookAddOptions,
  terminal: Terminal,
): Promise<boolean> => {
  if (consent === undefined || print || !process.stdin.isTTY || !terminal.isInteractive)
    return false
  const words = { question: consent, refusal: '', interrupted: 'nothing was written' }
  return confirm(words, terminal)
}

/**
 * Writes the secret before the entry, so that the webhook is never served without one, and its agent where that is
 * named like a program and missing.
 */
export const writeEntry = async (
  home: Home,
  found: OpenConfig,
  { webhook, preset, options, fixer }: ToWrite,
) => {
  const isOfBot = preset.recipe !== undefined && findBotOf(webhook.path, found) !== undefined
  const isBeside = isOfBot || (webhook.rule !== undefined && takesRules(webhook.path, found))
  if (!isBeside) refuseDouble(webhook.path, found)
  const open = await withAgentOfName(found, webhook.agent, fixer?.kind)
  const file = open.file('webhooks')
  const added = isBeside ? withRule(open, webhook, preset) : withEntry(open, webhook, preset)
  open.check('webhooks', added.text)
  const equipment = await equip(webhook.agent, open, { preset, fixer, isNew: open !== found })
  if (equipment?.text !== undefined) open.check('agents', equipment.text)
  const agentsBefore = found.file('agents').text
  const agents = equipment?.text ?? open.file('agents').text
  const secret = await secretFor(webhook, preset, options, open)
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
  return { open, webhook, file, added, secret, isNew, equipment, isNewAgent: open !== found }
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
  return addEntry(text, 'webhooks', { lines, expected: [...(webhooks ?? []), value] })
}

/** In an entry with other rules, as that of a bot, which takes the deliveries of all its repositories. */
const withRule = (open: OpenConfig, webhook: NewWebhook, preset: WebhookPreset) => {
  const index = open.config.webhooks.findIndex(({ path }) => path === webhook.path)
  const names = (open.config.webhooks[index]?.rules ?? []).map(({ name }) => name)
  const [repository] = webhook.filter['repository.full_name'] ?? []
  const name = names.includes('review') ? `review-${repository?.split('/')[1] ?? '2'}` : 'review'
  return addRule(open.file('webhooks').text, index, ruleEntry(webhook, preset, name))
}

type ToWrite = {
  readonly webhook: NewWebhook
  readonly preset: WebhookPreset
  readonly options: WebhookAddOptions
  /** The agent of a recipe that changes code. */
  readonly fixer?: Fixer | undefined
}

/** The JSON document of `webhook add --json`. */
type Report = {
  readonly path: string
  readonly url: string
  readonly agent: string
  readonly agentState?: 'new'
  /** What a recipe gave it, or why it did not. */
  readonly agentNote?: string
  readonly scheme: string
  /** Both are missing where the sender publishes its keys. */
  readonly secretEnv?: string
  readonly secretState?: 'new' | 'kept' | 'unset'
  /** Only with `--show-secret`. */
  readonly secret?: string | undefined
  readonly file: string
  readonly line: number
  readonly reloaded: boolean
}

const toWebhookUrl = (
  path: string,
  { public_url: publicUrl, port }: Gateway['server'],
  daemonUrl: string | undefined,
): string => {
  const base = publicUrl ?? daemonUrl ?? `http://127.0.0.1:${port === 0 ? 'PORT' : port}`
  return `${base.replace(/\/+$/, '')}${path}`
}

const reportLines = (report: Report, envFile: string): string[] => {
  const { secretEnv, secretState } = report
  const states = {
    new: `written to ${envFile}`,
    kept: 'already set',
    unset: 'not set yet: deliveries are answered 503',
  }
  return tableLines([
    ['added', `${report.file}:${report.line}`],
    ['webhook', report.url],
    ['agent', `${report.agent}${report.agentState ? ', new in agents.yaml' : ''}`],
    ...(report.agentNote === undefined ? [] : [['', report.agentNote]]),
    ...(secretState ? [['secret', `${secretEnv}, ${states[secretState]}`]] : []),
    ...(report.secret === undefined ? [] : [['', report.secret]]),
  ])
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
  { secretEnv, path }: NewWebhook,
  preset: WebhookPreset,
  options: WebhookAddOptions,
  { env }: OpenConfig,
): Promise<string | undefined> => {
  if (preset.keyField === 'none') return undefined
  const isSet = listSecrets([secretEnv], env).length > 0
  if (!options.secretStdin)
    return isSet || preset.secret === 'theirs'
      ? undefined
      : randomBytes(preset.isShort ? 16 : 32).toString('hex')
  if (isSet)
    throw new DoorwardError('usage', `${secretEnv} is already set`, {
      hint: 'omit --secret-stdin to keep it, or name another variable with --secret-env',
    })
  const secret = await readSecret({
    name: `secret of ${path}`,
    example: `doorward webhook add ${preset.scheme} --secret-stdin < secret.txt`,
  })
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

type ToTell = {
  readonly preset: WebhookPreset
  readonly hasConsent: boolean
  /** The bot that got the rule. */
  readonly bot: string | undefined
  readonly verifyEnv: string | undefined
}

/** The variable with the verify token of Meta. */
const verifyEnvOf = ({ fields }: NewWebhook): string | undefined => {
  const name = fields?.['verify_token_env']
  return typeof name === 'string' ? name : undefined
}

const nextSteps = (
  { path, secretEnv, secretState }: Report,
  { preset, hasConsent, verifyEnv, bot }: ToTell,
  envFile: string,
  isPublic: boolean,
  columns: number | undefined,
): string => {
  // Asana sends it with its first request.
  const isSentLater = hasConsent && secretState === 'unset' && preset.scheme === 'asana'
  const isMissing = preset.secret === 'theirs' && secretState === 'unset' && !isSentLater
  const testSecret = isMissing && preset.sample ? makeTestSecret(preset) : undefined
  const steps = [
    `at ${preset.title}: ${preset.where}`,
    ...(isMissing ? [`into ${envFile}: ${secretEnv}=..., ${preset.secretIs}`] : []),
    ...(testSecret === undefined
      ? []
      : [`until then, one to try it with: ${secretEnv}=${testSecret}`]),
    ...(isSentLater ? [`Asana then sends its secret, which is kept as ${secretEnv}`] : []),
    ...(preset.consent === undefined || hasConsent
      ? []
      : ['its first request is refused until the entry has confirm: true']),
    ...(preset.secret === 'ours' ? [`its secret: grep ^${secretEnv}= ${shellWord(envFile)}`] : []),
    ...(verifyEnv === undefined
      ? []
      : [`its verify token: grep ^${verifyEnv}= ${shellWord(envFile)}`]),
    ...(isPublic ? [] : [tunnelStep]),
    ...(preset.signsAddress && !isPublic
      ? [
          `server.public_url in gateway.yaml, which ${preset.title} signs: doorward config edit gateway`,
        ]
      : []),
    preset.sample
      ? `try it: doorward webhook send ${path} --sample ${preset.sample} --wait`
      : `see what its events contain: doorward webhook learn ${path}`,
  ]
  if (preset.feed) return toStepText(feedSteps(preset), columns)
  if (preset.recipe === undefined) return toStepText(steps, columns)
  const { sample, last } = findRuleRecipe(preset.recipe) ?? reviewStep
  const explained =
    sample === undefined
      ? []
      : [`see what it would do: doorward webhook explain ${path} --sample ${sample}`]
  if (preset.scheme !== 'github')
    return toStepText([...steps.slice(0, -1), loginStep, `then ${last}`], columns)
  const connected = bot === undefined ? hookSteps(path, isPublic) : [botStep(bot)]
  return toStepText([...explained, ...connected, `then ${spokenTo(last, bot)}`], columns)
}

/** A sample is not sent: that would review the pull request in it. */
const reviewStep = { sample: 'github:pull_request.opened', last: 'open a pull request there' }

const loginStep = 'a login that fetches the code and answers: doorward oauth import gh'

const hookSteps = (path: string, isPublic: boolean): string[] => [
  loginStep,
  `the hook at GitHub${isPublic ? '' : ', without a tunnel'}: doorward webhook connect github OWNER/REPO --path ${path}${isPublic ? '' : ' --poll'}`,
]

const botStep = (bot: string): string =>
  `the repositories in which it works: doorward bot install ${bot}`

/** A bot is spoken to by its own name. */
const spokenTo = (last: string, bot: string | undefined): string =>
  bot === undefined ? last : last.replace('@doorward', `@${bot}`)

const feedSteps = ({ scheme, feed = {} }: WebhookPreset): string[] =>
  scheme === 'slack'
    ? [
        'the app at Slack, from a manifest to paste: doorward help slack',
        `its two tokens into .env: ${feed['app_token_env']}=xapp-..., SLACK_BOT_TOKEN=xoxb-...`,
        'targets: { slack: { token_env: SLACK_BOT_TOKEN } } in gateway.yaml: doorward config edit gateway',
        'see that it is connected: doorward status',
      ]
    : [
        `the token of the bot into .env: ${feed['token_env']}=...`,
        'write to the bot in Telegram, and see that it is connected: doorward status',
      ]

const tunnelStep = 'a tunnel to server.public_port: doorward tunnel'

const toStepText = (steps: readonly string[], columns: number | undefined): string =>
  ['next:', ...steps.flatMap((step) => wrapWords(`  ${step}`, columns, { indent: 4 }))].join('\n')

/** A random secret of the sender's form: the built-in sample is then signed and accepted. */
const makeTestSecret = ({ scheme: name }: WebhookPreset): string | undefined => {
  const scheme = toScheme(name, { header: '', algorithm: 'sha256', prefix: '' })
  const hex = randomBytes(16).toString('hex')
  return [hex, `whsec_${hex}`].find((text) => secretFault(scheme, text) === undefined)
}
