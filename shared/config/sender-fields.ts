import { z } from 'zod'
import { isLoopbackUrl } from '../net.ts'
import { environmentName } from './values.ts'

/** Of OpenID Connect Core 1.0: https without a query or a fragment, and here http on loopback. */
const isIssuer = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, search, hash, username, password } = new URL(text)
  const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopbackUrl(text))
  return isSafe && search + hash + username + password === ''
}

/*
 * The fields of a webhook that some senders need besides a secret.
 */

export const senderFields = {
  public_key_env: z
    .union([environmentName, z.array(environmentName).min(1)])
    .optional()
    .describe(
      'With public-key, discord, sendgrid and telnyx, in place of secret_env: variable with the public key of the sender (PEM, base64 or hex); a list while keys are changed.',
    ),
  verify_token_env: environmentName
    .optional()
    .describe('With meta and strava: variable with the verify token. Default: that in secret_env.'),
  audience: z
    .string()
    .min(1)
    .optional()
    .describe(
      'With oidc and google-pubsub: the audience of the token; with github-actions server.public_url is the default. With aws-sns: the ARN of the topic. With monday: the address in its token; default any.',
    ),
  issuer: z
    .string()
    .refine(isIssuer, 'not an issuer: an https address (http on this machine) without a query')
    .optional()
    .describe(
      'With oidc: the issuer of the token, letter for letter; its discovery says where its keys are.',
    ),
  claims: z
    .record(z.string().min(1), z.union([z.string(), z.number(), z.boolean()]))
    .optional()
    .describe(
      'With oidc and github-actions: claims that the token must have, with their values, as sub: repo:acme/shop; github-actions needs repository. Default: none.',
    ),
  webhook_id: z
    .string()
    .regex(/^[\w-]{1,100}$/, 'not an id of a webhook')
    .optional()
    .describe('With paypal: the Webhook ID, which its signature covers.'),
  client_id: z
    .string()
    .regex(/^[\w-]{1,100}$/, 'not a client id')
    .optional()
    .describe('With plaid: the client_id of the API.'),
  service_account: z
    .email()
    .optional()
    .describe('With google-pubsub: the service account of its token.'),
  confirm: z
    .boolean()
    .default(false)
    .describe(
      'With asana, keeps the secret of its first request in .env; with aws-sns, confirms the subscription. Default false.',
    ),
}

type SenderEntry = z.output<z.ZodObject<typeof senderFields>>
type Fields = SenderEntry & { readonly signature_scheme: string; readonly secret_env?: unknown }

const keyPairs = ['discord', 'sendgrid', 'telnyx', 'public-key']
const published = ['google-pubsub', 'aws-sns', 'oidc', 'github-actions', 'paypal']

const sendersOf: { readonly [Field in keyof typeof senderFields]: readonly string[] } = {
  public_key_env: keyPairs,
  verify_token_env: ['meta', 'whatsapp', 'strava'],
  audience: ['google-pubsub', 'aws-sns', 'oidc', 'github-actions', 'monday'],
  issuer: ['oidc'],
  claims: ['oidc', 'github-actions'],
  webhook_id: ['paypal'],
  client_id: ['plaid'],
  service_account: ['google-pubsub'],
  confirm: ['asana', 'aws-sns'],
}

type Report = (key: readonly [string], reason: string, hint?: string) => void

/** Reports fields that the sender does not have, and missing ones without which nothing can be proved. */
export const checkSenderFields = (entry: Fields, report: Report): void => {
  const { signature_scheme: scheme, secret_env: secret } = entry
  for (const field of Object.keys(sendersOf) as (keyof typeof sendersOf)[]) {
    const senders = sendersOf[field]
    if (entry[field] !== undefined && entry[field] !== false && !senders.includes(scheme))
      report(
        [field],
        `cannot be combined with signature_scheme ${scheme}`,
        `it is for ${senders.join(', ')}`,
      )
  }
  if (secret !== undefined && keyPairs.includes(scheme))
    report(
      ['secret_env'],
      `${scheme} signs with a key pair`,
      'name its public key in public_key_env',
    )
  if (secret !== undefined && published.includes(scheme))
    report(['secret_env'], `${scheme} has no secret: it publishes its keys`, 'remove it')
  const needed = neededOf[scheme] ?? []
  for (const field of needed)
    if (entry[field] === undefined)
      report(['signature_scheme'], `${scheme} needs ${field}`, whyNeeded[scheme])
  if (scheme === 'github-actions' && entry.claims && !Object.hasOwn(entry.claims, 'repository'))
    report(['claims'], 'needs repository', needsRepository)
}

const neededOf: Readonly<Record<string, readonly (keyof typeof senderFields | 'secret_env')[]>> = {
  oidc: ['issuer', 'audience'],
  'public-key': ['public_key_env'],
  'github-actions': ['claims'],
  paypal: ['webhook_id'],
  plaid: ['client_id', 'secret_env'],
  'google-pubsub': ['audience', 'service_account'],
  'aws-sns': ['audience'],
}

const needsRepository =
  'anyone can have GitHub sign a token of another repository: write claims: { repository: owner/name }'

const whyNeeded: Readonly<Record<string, string>> = {
  oidc: 'an issuer signs tokens for others, too: write whose they are, and whom they are for',
  'public-key': 'name the variable with the public key of the sender',
  'github-actions': needsRepository,
  paypal: 'its signature covers the id of your webhook, which is shown beside its address',
  plaid: 'the keys of Plaid are given to its customers: write client_id, and secret_env',
  'google-pubsub':
    'anyone can have Google sign a token for another one: write what the subscription has',
  'aws-sns': 'anyone can have Amazon sign a message of another topic: write the ARN of yours',
}
