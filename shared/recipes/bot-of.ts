import { toBotSecretName } from '../api/bots.ts'
import { DoorwardError } from '../errors.ts'
import { didYouMean, toPlainLine } from '../text.ts'
import type { OpenConfig } from '../config-edit/open-config.ts'
import type { WebhookAddOptions } from './new-webhook.ts'

/** The bot whose deliveries come to this path, by its slug. */
export const findBotOf = (
  path: string,
  { config }: Pick<OpenConfig, 'config'>,
): string | undefined => config.webhooks.find((webhook) => webhook.path === path)?.source?.app

/** The entry at this path takes further rules: that of a bot, or one whose rules have names. */
export const takesRules = (path: string, { config }: Pick<OpenConfig, 'config'>): boolean =>
  config.webhooks.some(
    ({ path: known, source, rules }) =>
      known === path && (source?.app !== undefined || rules.some(({ name }) => name !== undefined)),
  )

/** The only entry of this sender that takes further rules, where none is named. */
export const findRuleEntry = (
  { config }: Pick<OpenConfig, 'config'>,
  scheme: string,
  { path }: Pick<WebhookAddOptions, 'path'>,
): Pick<WebhookAddOptions, 'path' | 'secretEnv'> | undefined => {
  const found = config.webhooks.filter(
    (webhook) =>
      webhook.scheme.name === scheme &&
      webhook.source?.app === undefined &&
      takesRules(webhook.path, { config }) &&
      (path === undefined || webhook.path === path),
  )
  const [only] = found
  return only && found.length === 1
    ? {
        path: only.path,
        ...(only.secretNames[0] !== undefined && { secretEnv: only.secretNames[0] }),
      }
    : undefined
}

/**
 * The entry that gets the rule of a recipe: that of the bot that is named, or of the only one. Undefined for an
 * entry of its own. Throws `usage`.
 */
export const findBotEntry = (
  { config }: Pick<OpenConfig, 'config'>,
  { bot, path }: Pick<WebhookAddOptions, 'bot' | 'path'>,
): Pick<WebhookAddOptions, 'path' | 'secretEnv'> | undefined => {
  if (bot === false || (bot === undefined && path !== undefined)) return undefined
  const bots = config.webhooks.flatMap((webhook) => {
    const app = webhook.source?.app
    return app === undefined ? [] : [{ app, path: webhook.path }]
  })
  const names = bots.map(({ app }) => app)
  const wanted = bot?.replace(/^github@/, '')
  const [only, ...more] = bots.filter(({ app }) => wanted === undefined || app === wanted)
  if (only === undefined && wanted === undefined) return undefined
  if (only === undefined)
    throw new DoorwardError(
      'usage',
      `no webhook takes the deliveries of ${toPlainLine(wanted ?? '')}`,
      {
        hint:
          didYouMean(wanted ?? '', names) ??
          'doorward bot create github makes a bot and its webhook',
      },
    )
  if (more.length > 0)
    throw new DoorwardError('usage', 'there is more than one bot: choose one', {
      hint: `--bot with one of ${names.join(', ')}, or --no-bot`,
    })
  return { path: only.path, secretEnv: toBotSecretName(only.app) }
}
