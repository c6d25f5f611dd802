import { readFileSync } from 'node:fs'
import { DoorwardError } from '../errors.ts'
import { formatPath, type Path } from '../paths.ts'
import { toScheme } from '../signatures/described.ts'
import {
  describedNames,
  presetSchemes,
  schemeAliases,
  type SchemeName,
} from '../signatures/presets.ts'
import {
  getKeySource,
  type HandshakeKind,
  type SignatureScheme,
  signsAddress,
} from '../signatures/scheme.ts'
import { findShortSample } from '../samples/samples.ts'
import { didYouMean } from '../text.ts'
import { packageFolder } from '../version.ts'
import { findRuleRecipe, ruleRecipes } from './rule-recipes.ts'

/** What `webhook add` knows about a sender, besides how it signs. */
export type WebhookPreset = {
  readonly scheme: SchemeName
  readonly title: string
  /** `ours`: doorward makes it and the user enters it at the sender. `theirs`: the sender makes it. */
  readonly secret: 'ours' | 'theirs'
  /** The sender takes no secret of 64 characters. */
  readonly isShort?: true
  /** The sender's name for the secret. */
  readonly secretIs: string
  /** The place at the sender where the URL is entered. */
  readonly where: string
  /** The field that names the variable of the secret or key; none where the sender publishes its keys. */
  readonly keyField?: 'secret_env' | 'public_key_env' | 'none'
  /** Other fields without which nothing can be verified. */
  readonly needs?: readonly string[]
  readonly whyNeeded?: string
  /** The sender signs the public address. */
  readonly signsAddress?: boolean
  /** What the owner is asked before doorward accepts the first request of the sender. */
  readonly consent?: string
  /** A commented example of a filter. */
  readonly filterExample?: string
  /** A built-in payload that its prompt is for. */
  readonly sample?: string
  /** `review` adds what `webhook add github-review` writes besides; the others are whole rules, by their names. */
  readonly recipe?: string
  /** The agent answers in the chat, which needs no address: its `source`, but for the ids of people. */
  readonly feed?: Readonly<Record<string, string>>
}

/** A key of YAML, which begins with no bracket. */
const toKey = (path: Path): string => {
  const text = formatPath(path)
  return text.startsWith('[') ? `'${text}'` : text
}

/** What the table of schemes says of a sender. */
const toPreset = (scheme: SignatureScheme<SchemeName>): WebhookPreset => {
  const { name, title, secretIs, where, makesSecret, event, forms, handshake } = scheme
  const isKey = forms.some(({ secret }) => secret === 'public-key')
  const consent = handshake && consents[handshake]
  const needs = neededFields[name]
  const sample = findShortSample(name)
  return {
    scheme: name,
    title,
    secret: makesSecret ? ('ours' as const) : ('theirs' as const),
    ...(makesSecret === 'short' && { isShort: true }),
    secretIs,
    where,
    keyField: getKeySource(scheme) ? 'none' : isKey ? 'public_key_env' : 'secret_env',
    ...(needs && { needs: needs.fields, whyNeeded: needs.why }),
    ...(signsAddress(scheme) && { signsAddress: true }),
    ...(consent !== undefined && { consent }),
    ...(sample !== undefined && { sample }),
    ...(event?.field !== undefined && {
      filterExample: `${toKey([...(event.items ?? []), ...event.field.split('.')])}: [one, another]`,
    }),
  }
}

/** The fields of an entry that only its owner knows. */
const neededFields: {
  readonly [Name in SchemeName]?: { readonly fields: readonly string[]; readonly why: string }
} = {
  'google-pubsub': {
    fields: ['audience', 'service_account'],
    why: 'they are those of the subscription: anyone can have Google sign a token for another one',
  },
  'aws-sns': {
    fields: ['audience'],
    why: '--audience is the ARN of the topic: anyone can have Amazon sign a message of another one',
  },
  'github-actions': {
    fields: ['claims'],
    why: 'anyone can have GitHub sign a token of another repository: write --field claims.repository=OWNER/NAME',
  },
  paypal: {
    fields: ['webhook_id'],
    why: 'its signature covers the id of your webhook: write --field webhook_id=…',
  },
  plaid: {
    fields: ['client_id'],
    why: 'the keys of Plaid are given to its customers: write --field client_id=…',
  },
  oidc: {
    fields: ['issuer', 'audience'],
    why: 'issuer is the iss of its tokens, and audience their aud: write --field issuer=https://…',
  },
  'public-key': {
    fields: ['algorithm', 'signature_header'],
    why: 'write --field algorithm=ed25519, ecdsa-p256 or rsa-sha256, and the header with the signature',
  },
}

/** Senders that prove themselves in a challenge by a token in the address. */
export const verifyTokenSenders = ['meta', 'strava']

/** Their first request is not answered without consent. */
const consents: { readonly [Kind in HandshakeKind]?: string } = {
  asana: 'Keep the secret that comes with the first request of Asana in .env?',
  'aws-sns': 'Confirm the subscription when Amazon SNS asks for it?',
}

/** Examples that fit the sender better than its event. */
const examples: Readonly<Record<string, Pick<WebhookPreset, 'filterExample' | 'sample'>>> = {
  github: {
    filterExample: 'pull_request.base.ref: [main, next]',
    sample: 'github:pull_request.opened',
  },
  gitlab: { filterExample: 'project.path_with_namespace: [group/one, group/two]' },
  stripe: { filterExample: 'livemode: [true]', sample: 'stripe:invoice.paid' },
  slack: { filterExample: 'event.channel: [C0123456789]', sample: 'slack:app_mention' },
  shopify: { filterExample: 'financial_status: [paid]' },
  linear: { filterExample: 'data.team.key: [ENG, OPS]' },
  sentry: { filterExample: 'action: [created, triggered]' },
  meta: { filterExample: 'object: [page, whatsapp_business_account]' },
  'standard-webhooks': { filterExample: 'type: [one, another]' },
  token: { filterExample: 'type: [one, another]' },
  hmac: { filterExample: 'type: [one, another]' },
  'public-key': { filterExample: 'type: [one, another]' },
  oidc: { filterExample: 'type: [one, another]' },
}

const noFields = { header: '', algorithm: 'sha256', prefix: '' } as const

/**
 * The events that the prompt of a sender is for, where it is not for all: no other one runs an agent with empty
 * fields.
 */
export const promptEvents: Readonly<Record<string, readonly string[]>> = {
  bitbucket: ['pullrequest:created', 'repo:push'],
  calendly: ['invitee.created', 'invitee.canceled'],
  gitea: ['pull_request.opened', 'pull_request.reopened'],
  github: ['pull_request.opened', 'pull_request.reopened'],
  gitlab: ['push', 'merge_request', 'issue', 'note', 'pipeline'],
  jira: ['jira:issue_created', 'jira:issue_updated', 'comment_created'],
  linear: ['Issue', 'Comment'],
  sentry: ['issue', 'error', 'event_alert', 'metric_alert'],
  shopify: ['orders/create', 'orders/paid', 'orders/cancelled'],
  slack: ['app_mention'],
  stripe: [
    'invoice.paid',
    'invoice.payment_failed',
    'charge.failed',
    'charge.dispute.created',
    'checkout.session.completed',
  ],
  woocommerce: ['order.created', 'order.updated'],
}

/** The prompt of a preset: it picks the fields of the sender's events, and says what it leaves out. */
export const readPrompt = (preset: string): string =>
  readFileSync(new URL(`assets/prompts/${preset}.liquid`, packageFolder), 'utf8')

/** Presets by name. */
export const webhookPresets: Readonly<Record<string, WebhookPreset>> = Object.fromEntries(
  [...presetSchemes, ...describedNames.map((name) => toScheme(name, noFields))].map((scheme) => [
    scheme.name,
    { ...toPreset(scheme), ...examples[scheme.name] },
  ]),
)

/** Complete rules for a sender, by name; `webhook add` takes them as it takes presets. */
export const recipes: Readonly<Record<string, string>> = {
  'github-review': 'GitHub: reviews of pull requests',
  ...Object.fromEntries(Object.entries(ruleRecipes).map(([name, { title }]) => [name, title])),
  'slack-agent': 'Slack: mentions and direct messages, by socket',
  'telegram-agent': 'Telegram: messages of yours, by polling',
}

const feeds: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'slack-agent': { provider: 'slack', mode: 'socket', app_token_env: 'SLACK_APP_TOKEN' },
  'telegram-agent': { provider: 'telegram', mode: 'poll', token_env: 'TELEGRAM_BOT_TOKEN' },
}

const findRecipe = (name: string): WebhookPreset | undefined => {
  if (!Object.hasOwn(recipes, name)) return undefined
  const feed = Object.hasOwn(feeds, name) ? feeds[name] : undefined
  const { filterExample: _, ...chat } = webhookPresets[feed?.['provider'] ?? ''] ?? {}
  if (feed && 'scheme' in chat) return { ...chat, keyField: 'none', secret: 'theirs', feed }
  const { scheme = 'github' } = findRuleRecipe(name) ?? {}
  const preset = webhookPresets[scheme]
  return preset && { ...preset, recipe: name === 'github-review' ? 'review' : name }
}

/** The preset with this name. Throws `usage` with the nearest name. */
export const findPreset = (given: string): WebhookPreset => {
  const name = Object.hasOwn(schemeAliases, given)
    ? schemeAliases[given as keyof typeof schemeAliases]
    : given
  const preset = Object.hasOwn(webhookPresets, name) ? webhookPresets[name] : findRecipe(name)
  if (preset) return preset
  const names = [...Object.keys(recipes), ...Object.keys(webhookPresets)]
  throw new DoorwardError('usage', `there is no preset "${given}"`, {
    hint: didYouMean(given, names) ?? `one of ${names.join(', ')}`,
  })
}
