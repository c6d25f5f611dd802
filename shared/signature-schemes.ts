/*
 * How each sender signs its webhooks, as data: the verifier (daemon/webhook) and `webhook send`
 * (cli/commands/webhook) use this table. `source` links to the documentation of the sender.
 */

/** One form of signature. */
export type SignatureForm = {
  /** Header with the signature; its presence commits a delivery to this form. Lower case. */
  readonly header: string
  /** `mac`: an HMAC of the signed bytes. `token`: the secret itself, which does not cover the body. */
  readonly check: 'mac' | 'token'
  readonly algorithm: 'sha256' | 'sha1'
  readonly encoding: 'hex' | 'base64'
  /** The text before each signature; may be empty. */
  readonly prefix: string
  /** One signature; or a list, separated by commas after `t=` (Stripe) or by spaces (Standard Webhooks). */
  readonly list: 'one' | 'commas' | 'spaces'
  /** The signed bytes; the raw body comes last. */
  readonly signs: '{raw}' | '{t}.{raw}' | 'v0:{t}:{raw}' | '{id}.{t}.{raw}'
  /** Header with the time of sending in Unix seconds; with `commas` the time is in the signature header. */
  readonly timestampHeader?: string
  /** Header with the signed id of the delivery. */
  readonly idHeader?: string
  /**
   * How a secret becomes a key: `text` unchanged; `base64` decoded, with or without the prefix `whsec_`;
   * `whsec` the same, but only for secrets with the prefix, and `token` only for those without.
   */
  readonly secret: 'text' | 'base64' | 'whsec' | 'token'
}

export type SignatureScheme = {
  readonly name: SchemeName
  /**
   * From strongest to weakest: the first with a header in the request and a secret is used. The last is what
   * the sender usually sends.
   */
  readonly forms: readonly SignatureForm[]
  /**
   * How far a signed time may be in the past or the future, in seconds. A time far in the future would allow
   * a replay until then. Stripe and Slack recommend five minutes; Slack's page, Stripe's PHP library and
   * Standard Webhooks limit both directions.
   */
  readonly toleranceSeconds?: number
  /** Field of the body with the signed time in milliseconds, if no header has it. */
  readonly bodyTimestamp?: string
  /** Where the delivery id is: headers, tried in order, and a field of the verified body. */
  readonly deliveryId: { readonly headers: readonly string[]; readonly body?: string }
  /**
   * What names the kind of event, for `on`: a field of the body, which a signature covers, else a header; and
   * the field with the action.
   */
  readonly event?: { readonly header?: string; readonly field?: string; readonly action?: string }
  /** The sender calls its JSON text/plain. */
  readonly jsonAsText?: true
  /** The sender has no body: these headers, in lower case, are the payload. */
  readonly emptyBody?: readonly string[]
  readonly source: string
}

export const schemeNames = [
  'hmac',
  'github',
  'stripe',
  'slack',
  'standard-webhooks',
  'gitlab',
  'shopify',
  'linear',
  'sentry',
] as const
export type SchemeName = (typeof schemeNames)[number]

/** Other names of a scheme. */
export const schemeAliases = { svix: 'standard-webhooks' } as const

type PresetName = Exclude<SchemeName, 'hmac'>

const overBody = {
  check: 'mac',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  list: 'one',
  signs: '{raw}',
  secret: 'text',
} as const

const standardWebhooks = (family: 'webhook' | 'svix') =>
  ({
    ...overBody,
    header: `${family}-signature`,
    encoding: 'base64',
    prefix: 'v1,',
    list: 'spaces',
    signs: '{id}.{t}.{raw}',
    timestampHeader: `${family}-timestamp`,
    idHeader: `${family}-id`,
    secret: 'base64',
  }) as const

/** The id headers of all known senders, for `hmac`. */
const anyIdHeader = [
  'x-github-delivery',
  'webhook-id',
  'svix-id',
  'idempotency-key',
  'x-gitlab-event-uuid',
  'x-shopify-webhook-id',
  'linear-delivery',
  'request-id',
]

const presets: { readonly [Name in PresetName]: SignatureScheme & { readonly name: Name } } = {
  github: {
    name: 'github',
    forms: [{ ...overBody, header: 'x-hub-signature-256', prefix: 'sha256=' }],
    deliveryId: { headers: ['x-github-delivery'] },
    event: { header: 'x-github-event', action: 'action' },
    source: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
  },
  stripe: {
    name: 'stripe',
    // The key is the whole secret, including `whsec_`.
    forms: [
      {
        ...overBody,
        header: 'stripe-signature',
        prefix: 'v1=',
        list: 'commas',
        signs: '{t}.{raw}',
      },
    ],
    toleranceSeconds: 300,
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'type' },
    source: 'https://docs.stripe.com/webhooks/signatures',
  },
  slack: {
    name: 'slack',
    forms: [
      {
        ...overBody,
        header: 'x-slack-signature',
        prefix: 'v0=',
        signs: 'v0:{t}:{raw}',
        timestampHeader: 'x-slack-request-timestamp',
      },
    ],
    toleranceSeconds: 300,
    deliveryId: { headers: [], body: 'event_id' },
    event: { field: 'event.type' },
    source: 'https://docs.slack.dev/authentication/verifying-requests-from-slack',
  },
  'standard-webhooks': {
    name: 'standard-webhooks',
    forms: [standardWebhooks('svix'), standardWebhooks('webhook')],
    toleranceSeconds: 300,
    deliveryId: { headers: ['svix-id', 'webhook-id'] },
    event: { field: 'type' },
    source:
      'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md',
  },
  gitlab: {
    name: 'gitlab',
    // GitLab sends webhook-id and webhook-timestamp always, webhook-signature with a signing token only.
    forms: [
      { ...standardWebhooks('webhook'), secret: 'whsec' },
      { ...overBody, header: 'x-gitlab-token', check: 'token', secret: 'token' },
    ],
    toleranceSeconds: 300,
    // The event's UUID comes last: webhooks that trigger each other share it.
    deliveryId: { headers: ['webhook-id', 'idempotency-key', 'x-gitlab-event-uuid'] },
    event: {
      header: 'x-gitlab-event',
      field: 'object_kind',
      action: 'object_attributes.action',
    },
    source: 'https://docs.gitlab.com/user/project/integrations/webhooks/',
  },
  shopify: {
    name: 'shopify',
    // The header of the newer Events API first, as Shopify's own library does.
    forms: [
      { ...overBody, header: 'shopify-hmac-sha256', encoding: 'base64' },
      { ...overBody, header: 'x-shopify-hmac-sha256', encoding: 'base64' },
    ],
    deliveryId: { headers: ['x-shopify-webhook-id', 'shopify-webhook-id'] },
    event: { header: 'x-shopify-topic' },
    source: 'https://shopify.dev/docs/apps/build/webhooks/subscribe/https',
  },
  linear: {
    name: 'linear',
    forms: [{ ...overBody, header: 'linear-signature' }],
    // A header has the time too, but it is not signed: Linear's own library reads only the body.
    toleranceSeconds: 60,
    bodyTimestamp: 'webhookTimestamp',
    deliveryId: { headers: ['linear-delivery'] },
    event: { header: 'linear-event', field: 'type', action: 'action' },
    source: 'https://linear.app/developers/webhooks#securing-webhooks',
  },
  sentry: {
    name: 'sentry',
    forms: [{ ...overBody, header: 'sentry-hook-signature' }],
    deliveryId: { headers: ['request-id'] },
    event: { header: 'sentry-hook-resource', action: 'action' },
    source: 'https://docs.sentry.io/organization/integrations/integration-platform/webhooks/',
  },
}

/** Every scheme but `hmac`, which has its fields in webhooks.yaml. */
export const presetSchemes: readonly SignatureScheme[] = Object.values(presets)

type SignatureFields = {
  readonly header: string
  readonly algorithm: 'sha256' | 'sha1'
  readonly prefix: string
}

/** The scheme of this name or alias; `fields` are for `hmac`. */
export const toScheme = (
  name: SchemeName | keyof typeof schemeAliases,
  fields: SignatureFields,
): SignatureScheme => {
  const scheme = name === 'svix' ? schemeAliases.svix : name
  return scheme === 'hmac' ? hmacScheme(fields) : presets[scheme]
}

/** A hex HMAC of the raw body in a configured header. */
export const hmacScheme = ({ header, algorithm, prefix }: SignatureFields): SignatureScheme => ({
  name: 'hmac',
  forms: [{ ...overBody, header, algorithm, prefix }],
  deliveryId: { headers: anyIdHeader },
  source: 'RFC 2104',
})

/** The signed bytes before the raw body; undefined if only the body is signed. */
export const signedHead = (
  signs: SignatureForm['signs'],
  timestamp: string,
  id: string,
): string | undefined => {
  switch (signs) {
    case '{raw}':
      return undefined
    case '{t}.{raw}':
      return `${timestamp}.`
    case 'v0:{t}:{raw}':
      return `v0:${timestamp}:`
    case '{id}.{t}.{raw}':
      return `${id}.${timestamp}.`
  }
}

const marker = 'whsec_'

/** The key bytes of a secret in this form; undefined when the secret does not fit. */
export const keyBytes = (form: SignatureForm, secret: string): Buffer | undefined => {
  const isMarked = secret.startsWith(marker)
  switch (form.secret) {
    case 'text':
      return Buffer.from(secret)
    case 'token':
      return isMarked ? undefined : Buffer.from(secret)
    case 'whsec':
      return isMarked ? decoded(secret.slice(marker.length)) : undefined
    case 'base64':
      return decoded(isMarked ? secret.slice(marker.length) : secret)
  }
}

/** Base64 (RFC 4648 section 4) with optional padding; Node itself accepts anything. */
const decoded = (text: string): Buffer | undefined => {
  const bare = text.replace(/={1,2}$/, '')
  const isPadded = bare !== text
  if (!/^[A-Za-z0-9+/]+$/.test(bare) || bare.length % 4 === 1) return undefined
  return isPadded && text.length % 4 !== 0 ? undefined : Buffer.from(bare, 'base64')
}

/**
 * What looks wrong with a secret, without any part of it: `unusable` when it cannot verify anything.
 */
export const secretFault = (
  scheme: SignatureScheme,
  secret: string,
): { readonly reason: string; readonly unusable: boolean } | undefined => {
  const unusable = !scheme.forms.some((form) => keyBytes(form, secret) !== undefined)
  const reason = findFault(scheme, secret, unusable)
  return reason === undefined ? undefined : { reason, unusable }
}

const findFault = (
  scheme: SignatureScheme,
  secret: string,
  unusable: boolean,
): string | undefined => {
  if (/^\s|\s$/.test(secret)) return 'has white space at its beginning or end'
  if (/^(["']).*\1$/s.test(secret)) return 'has quotes around it, which count as a part of it'
  if (scheme.name === 'standard-webhooks' && /^wh[ps]k_/.test(secret))
    return 'is an Ed25519 key (v1a): only the symmetric kind that begins with whsec_ is taken'
  if (unusable) return 'is not base64 after whsec_, as this scheme has it'
  if (scheme.name === 'standard-webhooks' && !secret.startsWith(marker))
    return 'does not begin with whsec_, as secrets of Standard Webhooks do'
  if (scheme.name === 'stripe' && !secret.startsWith(marker))
    return "does not begin with whsec_, as Stripe's signing secrets do (an API key is another thing)"
  if (scheme.name === 'slack' && !/^[0-9a-f]{32}$/.test(secret))
    return "is not 32 hex digits, as Slack's signing secrets are (a token or client secret is another thing)"
  const marked = scheme.forms.find(({ secret: kind }) => kind === 'base64' || kind === 'whsec')
  if (marked && secret.startsWith(marker) && (keyBytes(marked, secret)?.length ?? 0) < 24)
    return 'is shorter than the 24 bytes that Standard Webhooks asks for'
  return undefined
}
