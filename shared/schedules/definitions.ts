import type { About } from '../errors.ts'
import type { Rule } from '../config/rule.ts'
import type { Webhook } from '../config/webhook.ts'

/* Webhooks and schedules: an event is made by the definition of one of them, and its rules say what it runs. */

type Definitions = {
  readonly webhooks: readonly Webhook[]
  readonly schedules?: readonly { readonly webhook: Webhook }[]
}

/** All enabled definitions: webhooks, and those by which events of schedules are made. */
export const enabledDefinitions = ({ webhooks, schedules = [] }: Definitions): Webhook[] =>
  [...webhooks, ...schedules.map(({ webhook }) => webhook)].filter(({ enabled }) => enabled)

/** Their rules but those that are paused. */
export const enabledRules = (definitions: Definitions): Rule[] =>
  enabledDefinitions(definitions).flatMap(({ rules }) => rules.filter(({ isPaused }) => !isPaused))

/** `webhook /webhook/github review` or `schedule nightly`, for a warning. */
export const describeRule = (path: string, { name }: Pick<Rule, 'name'>): string => {
  const [kind, schedule] = path.split(':', 2)
  if (kind === 'schedule' && schedule !== undefined) return `${kind} ${schedule}`
  return name === undefined ? `webhook ${path}` : `webhook ${path} ${name}`
}

/** The subject of a warning about a rule of the definition at this path. */
export const aboutRule = (path: string): About =>
  path.startsWith('/') ? { webhook: path } : { file: 'config/schedules.yaml' }
