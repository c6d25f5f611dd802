import { randomBytes } from 'node:crypto'
import { detectAgentClis } from '../../../shared/agents/detect.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { isForModel } from '../../../shared/config/rule.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import type { Home } from '../../../shared/home/home.ts'
import { toScheme } from '../../../shared/signatures/described.ts'
import { secretFault } from '../../../shared/signatures/secrets.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { type OpenConfig, openConfig } from '../../../shared/config-edit/open-config.ts'
import { findBotOf } from '../../../shared/recipes/bot-of.ts'
import { chooseFixer } from '../../../shared/recipes/fix-agent.ts'
import {
  newWebhook,
  type NewWebhook,
  type WebhookAddOptions,
} from '../../../shared/recipes/new-webhook.ts'
import { findPreset, type WebhookPreset } from '../../../shared/recipes/presets.ts'
import { findRuleRecipe } from '../../../shared/recipes/rule-recipes.ts'
import { isReader } from '../../../shared/recipes/review-recipe.ts'
import { webhookEntry } from '../../../shared/recipes/webhook-entry.ts'
import {
  findEntry,
  verifyEnvOf,
  withRecipe,
  writeEntry,
} from '../../../shared/recipes/write-webhook.ts'
import type { Context } from '../../context.ts'
import { reloadIfRunning } from '../daemon/reload.ts'
import { choose, confirm, readSecret } from '../../terminal/input.ts'
import { printEntry } from '../../terminal/print-entry.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { shellWord } from '../../terminal/format.ts'
import { tableLines } from '../../terminal/table.ts'
import { wrapWords } from '../../terminal/wrap.ts'

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
    if (!options.print)
      return writeEntry(home, opened, {
        webhook,
        preset,
        fixer,
        ...toReader(webhook, preset, options),
      })
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

const toReader = (
  { path }: NewWebhook,
  { scheme }: WebhookPreset,
  { secretStdin }: WebhookAddOptions,
) =>
  secretStdin && {
    readOwnSecret: async () =>
      readSecret({
        name: `secret of ${path}`,
        example: `doorward webhook add ${scheme} --secret-stdin < secret.txt`,
      }),
  }

const askReviewer = async (home: Home, terminal: Terminal): Promise<string> =>
  chooseReviewer(await openConfig(home), terminal)

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

/** The JSON document of `webhook add --json`. */
type Report = {
  readonly path: string
  readonly url: string
  readonly agent: string
  readonly agentState?: 'new'
  /** The rule that a recipe gave it, or why it gave none. */
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

type ToTell = {
  readonly preset: WebhookPreset
  readonly hasConsent: boolean
  /** The bot that got the rule. */
  readonly bot: string | undefined
  readonly verifyEnv: string | undefined
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

/** The agent that reviews: the only one with a model behind it, or the one that the user chooses. Throws `usage`. */
const chooseReviewer = async ({ config, env }: OpenConfig, terminal: Terminal): Promise<string> => {
  const models = [...config.agents].filter(([, { kind }]) => isForModel(kind))
  // An agent that changes code has rules of its own.
  const readers = models.filter(([, agent]) => !(isReader(agent) && agent.tools === 'write'))
  const names = (readers.length > 0 ? readers : models).map(([name]) => name)
  const [only] = names
  if (only === undefined) {
    const [installed] = (await detectAgentClis(env)).filter(({ path }) => path !== undefined)
    throw new DoorwardError('usage', 'there is no agent that could review code yet', {
      hint: `doorward webhook add github-review --agent ${installed?.kind ?? 'claude'}`,
    })
  }
  if (names.length === 1) return only
  const refusal = 'there is more than one agent: choose one'
  const hint = `--agent with one of ${names.join(', ')}`
  return choose({ question: 'Which agent reviews?', values: names, refusal, hint }, terminal)
}
