import { type EventRecord, testKeyHeader, type WebhookSummary } from '../../shared/api/api.ts'
import { type Budget, toRunLimit } from '../../shared/agents/budget.ts'
import { enabledDefinitions } from '../../shared/schedules/definitions.ts'
import { listSecrets } from '../../shared/config/environment.ts'
import { hasToken } from '../../shared/sources/feed.ts'
import type { Config } from '../../shared/config/load.ts'
import { type Rule, scopePaths } from '../../shared/config/rule.ts'
import type { Webhook } from '../../shared/config/webhook.ts'
import {
  getKeySource,
  hasPrivateKey,
  type SignatureScheme,
} from '../../shared/signatures/scheme.ts'
import { headerNamesIn } from '../../shared/templates.ts'
import type { EventStore } from '../events/event-store.ts'
import { type Leaving, toLeaving } from './approvals/leaving.ts'
import { isEventHeader, isOwnEventHeader } from './event-name.ts'
import type { SignatureHeaders } from './signatures/header.ts'
import { handshakeMethods } from './senders/handshakes-unsigned.ts'
import { handshakeHeaders } from './senders/handshakes.ts'
import { prepareVerifier, type Verifier } from './signatures/verify.ts'

/** A definition with its secrets as keys: everything for a request, prepared once. */
export type CompiledWebhook = Omit<Webhook, 'rules'> & {
  readonly rules: readonly CompiledRule[]
  readonly verifier: Verifier
  /** Of a body, also where its sender compresses it. */
  readonly maxBodyBytes: number
  /** Its sender posts a handshake that nothing signs. */
  readonly hasUnsignedPost: boolean
  /** The headers of a request that are read. */
  readonly headerNames: readonly string[]
  /** Those of them that name the event, where no signature covers them. */
  readonly eventHeaders: readonly string[]
  /** Those of them that filters and templates read, as they are written there. */
  readonly scopeHeaders: readonly string[]
  /** The secrets of this home as text, to diagnose a bad signature. */
  readonly secrets: () => KnownSecrets
  /** What proves the sender of a challenge that is not signed. */
  readonly verifyTokens: () => readonly string[]
}

/** A rule with the path of its webhook, and what its sender tells of times. */
export type CompiledRule = Rule &
  Pick<Webhook, 'path'> &
  Pick<SignatureScheme, 'hasUpdatedAt'> & {
    /** What a run of it may cost, beside the budget of its agent. */
    readonly runLimit?: Budget['run']
    /** Holds its answers back from their targets; undefined where they leave at once. */
    readonly leaving?: Leaving
  }

export type KnownSecrets = {
  readonly own: readonly string[]
  /** Secrets of other webhooks, with their paths. */
  readonly others: readonly { readonly path: string; readonly secret: string }[]
}

/** Compiles all enabled definitions, by URL path. */
export const webhooksByPath = (
  config: Config,
  env: NodeJS.ProcessEnv,
): ReadonlyMap<string, CompiledWebhook> =>
  new Map(
    enabledDefinitions(config).flatMap((webhook) => {
      const scopeHeaders = headerNamesIn(webhook.rules.flatMap(scopePaths))
      const headerNames = listHeaderNames(webhook.scheme, scopeHeaders)
      const ready: CompiledWebhook = {
        ...webhook,
        rules: compileRules(webhook, config, env),
        verifier: createVerifier(webhook, env, config),
        hasUnsignedPost: handshakeMethods(webhook.scheme).includes('POST'),
        maxBodyBytes: config.gateway.server.body_limit,
        headerNames,
        eventHeaders: headerNames.filter(
          (name) => isEventHeader(name) || isOwnEventHeader(webhook.scheme, name),
        ),
        scopeHeaders,
        secrets: () => knownSecrets(webhook, config, env),
        verifyTokens: () => listSecrets(webhook.verifyTokenNames, env),
      }
      return webhook.urlPaths.map((path) => [path, ready] as const)
    }),
  )

const compileRules = (
  { path, scheme: { hasUpdatedAt }, rules }: Webhook,
  { gateway }: Config,
  env: NodeJS.ProcessEnv,
): CompiledWebhook['rules'] =>
  rules.map((rule) => {
    const runLimit = toRunLimit([rule.budget, gateway.budget])
    const leaving = toLeaving(rule, gateway, env)
    const allowedLinks = [rule.publish?.allowedLinks, gateway.allowed_links].flatMap(
      (hosts) => hosts ?? [],
    )
    return {
      ...rule,
      ...(allowedLinks.length > 0 && { publish: { ...rule.publish, allowedLinks } }),
      path,
      ...(hasUpdatedAt && { hasUpdatedAt }),
      ...(runLimit && { runLimit }),
      ...(leaving && { leaving }),
    }
  })

const createVerifier = (
  { scheme, secretNames }: Webhook,
  env: NodeJS.ProcessEnv,
  { gateway }: Config,
): Verifier => {
  if (secretNames.length === 0 && !getKeySource(scheme)) return 'none'
  const secrets = listSecrets(secretNames, env)
  if (secrets.length === 0 && secretNames.length > 0) return 'unset'
  const publicUrl = gateway.server.public_url?.replace(/\/+$/, '')
  return prepareVerifier(scheme, secrets, publicUrl)
}

const knownSecrets = (webhook: Webhook, config: Config, env: NodeJS.ProcessEnv): KnownSecrets => {
  const own = listSecrets(webhook.secretNames, env)
  const others = config.webhooks
    .filter(({ path }) => path !== webhook.path)
    .flatMap(({ path, secretNames }) =>
      listSecrets(secretNames, env).map((secret) => ({ path, secret })),
    )
    .filter(({ secret }) => !own.includes(secret))
  return { own, others }
}

/** Needed for every scheme: signs of a web page, and the format of the body. */
const always = ['origin', 'sec-fetch-site', 'content-length', 'content-type', 'content-encoding']

/** What PayPal signs, and by which certificate. */
const paypalHeaders = [
  'paypal-transmission-id',
  'paypal-transmission-time',
  'paypal-auth-algo',
  'paypal-cert-url',
]

/** The headers that are read in a delivery of this scheme, and those of templates, in lower case. */
export const listHeaderNames = (
  { forms, deliveryId, event, emptyBody = [], handshake, challenge }: SignatureScheme,
  ofTemplates: readonly string[] = [],
): readonly string[] => {
  const ofTests = forms.some(hasPrivateKey) ? [testKeyHeader] : []
  const ofForms = forms.flatMap(({ header, timestampHeader, idHeader, moreHeaders = [], check }) =>
    [
      ...(check === 'paypal' ? paypalHeaders : []),
      header,
      timestampHeader,
      idHeader,
      ...moreHeaders,
    ].flatMap((name) => name || []),
  )
  const ofHandshake = (handshake && handshakeHeaders[handshake]) ?? []
  const ofId = [...deliveryId.headers, deliveryId.source?.header ?? []].flat()
  const ofScheme = [...ofForms, ...ofId, ...emptyBody, ...ofHandshake]
  const ofEvent = [event?.header ?? [], event?.headers ?? []].flat()
  const ofChallenge = challenge?.header === undefined ? [] : [challenge.header]
  const all = [...ofScheme, ...ofEvent, ...ofChallenge, ...ofTests, ...always, ...ofTemplates]
  return [...new Set(all.map((name) => name.toLowerCase()))]
}

/**
 * All values of these headers separately, as in `headersDistinct` of node:http, which costs more than the
 * verification. The shape of `headers` of node:http depends on the order of the headers, and each new
 * shape makes V8 discard compiled code.
 */
export const headersNamed = (
  rawHeaders: readonly string[],
  names: readonly string[],
): SignatureHeaders => {
  const found = Object.create(null) as Record<string, string[]>
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] ?? ''
    const value = rawHeaders[index + 1] ?? ''
    let lower: string | undefined
    for (const name of names) {
      if (name.length !== given.length || name !== (lower ??= given.toLowerCase())) continue
      const values = found[name]
      if (values) values.push(value)
      else found[name] = [value]
    }
  }
  return found
}

type Counts = WebhookSummary['counts']

export type EventCounts = {
  /** Of a webhook, or of one of its rules. */
  readonly of: (path: string, rule?: string) => Counted
  readonly snapshot: () => readonly (readonly [path: string, counted: Counted])[]
  readonly restore: (entries: readonly (readonly [path: string, counted: Counted])[]) => void
}

/** Counts the events of each webhook from now on. */
export const countEvents = (events: EventStore): EventCounts => {
  const counted = new Map<string, Counted>()
  const of = (path: string, rule?: string): Counted => {
    const key = rule === undefined ? path : `${path} ${rule}`
    const known = counted.get(key)
    if (known) return known
    const fresh: Counted = { counts: noCounts(), lastEventAt: null }
    counted.set(key, fresh)
    return fresh
  }
  events.follow(({ record, before }) => {
    const { webhook, rule, state, receivedAt } = record
    if (webhook === null || (before !== undefined && !isCounted(state))) return
    const count = (entry: Counted): void => {
      entry.lastEventAt = later(entry.lastEventAt, receivedAt)
      if (isCounted(state)) entry.counts[state] += 1
    }
    count(of(webhook))
    if (rule !== undefined) count(of(webhook, rule))
  })
  return {
    of,
    snapshot: () => [...counted],
    restore: (entries) => {
      for (const [path, { counts, lastEventAt }] of entries)
        counted.set(path, { counts: { ...noCounts(), ...counts }, lastEventAt })
    },
  }
}

export type Counted = { counts: Counts; lastEventAt: string | null }

const noCounts = (): Counts => ({
  accepted: 0,
  filtered: 0,
  duplicate: 0,
  rejected: 0,
  done: 0,
  failed: 0,
  dropped: 0,
})

const countedStates = new Set(Object.keys(noCounts()))

const isCounted = (state: EventRecord['state']): state is keyof Counts => countedStates.has(state)

const later = (a: string | null, b: string): string => (a !== null && a > b ? a : b)

/** What `GET /webhooks` shows of every definition; never a secret. */
export const summarize = (
  config: Config,
  env: NodeJS.ProcessEnv,
  baseUrl: string,
  countedOf: EventCounts['of'],
): WebhookSummary[] =>
  config.webhooks.map((webhook) => {
    const { counts, lastEventAt } = countedOf(webhook.path)
    return {
      path: webhook.path,
      url: `${baseUrl.replace(/\/+$/, '')}${webhook.urlPaths.at(-1) ?? webhook.path}`,
      agent: unique(webhook.rules.map(({ agentName }) => agentName)).join(', '),
      enabled: webhook.enabled,
      scheme: webhook.scheme.name,
      sender: webhook.scheme.title,
      ...(webhook.rules.some(({ name, dryRun }) => name === undefined && dryRun) && {
        dryRun: true as const,
      }),
      secret: secretState(webhook, env),
      deliverTo: unique(webhook.rules.flatMap(listTargets)),
      counts: { ...counts },
      lastEventAt,
      ...(webhook.rules.every(({ name }) => name !== undefined) && {
        rules: webhook.rules.map((rule) => summarizeRule(webhook.path, rule, countedOf)),
      }),
    }
  })

const summarizeRule = (
  path: string,
  rule: Rule,
  countedOf: EventCounts['of'],
): NonNullable<WebhookSummary['rules']>[number] => {
  const { name = '', on, agentName: agent, isPaused, dryRun } = rule
  const { counts } = countedOf(path, name)
  return {
    name,
    ...(on && { on: [...on] }),
    agent,
    deliverTo: listTargets(rule),
    ...(isPaused && { enabled: false as const }),
    ...(dryRun && { dryRun: true as const }),
    counts: { ...counts },
  }
}

const listTargets = ({ targets }: Rule): string[] => targets.map(({ text }) => text)

const unique = (texts: readonly string[]): string[] => [...new Set(texts)]

const secretState = (webhook: Webhook, env: NodeJS.ProcessEnv): WebhookSummary['secret'] => {
  const { feed } = webhook
  // Nothing can be sent to the path of a program or of files.
  if (feed) return !hasToken(feed) || listSecrets([feed.tokenEnv], env).length > 0 ? 'set' : 'unset'
  if (getKeySource(webhook.scheme)) return 'set'
  if (webhook.secretNames.length === 0) return 'none'
  return listSecrets(webhook.secretNames, env).length > 0 ? 'set' : 'unset'
}
