import { z } from 'zod'
import { entryName, isMailAddress, isTelegramChat } from './target-address.ts'
import { bytesOf, millisecondsOf } from './units.ts'

/*
 * The shapes of the three configuration files. The same schemas check what is loaded and write the
 * JSON Schema files that editors complete from, so a key exists here or nowhere.
 */

// Of setTimeout: a longer one would fire at once.
const longestTimerMs = 2_147_483_647
const notDuration = 'not a duration: write it like 500ms, 30s, 10m, 2h or 7d'

const largestSize = 1024 ** 4
const notSize = 'not a size: write it like 512kb, 25mb or 1gb'

const duration = (text: string, meaning: string) =>
  z
    .string(notDuration)
    .regex(/^\d+(ms|s|m|h|d)$/, notDuration)
    .transform(millisecondsOf)
    .refine((ms) => ms > 0 && ms <= longestTimerMs, 'must lie between 1ms and 24d')
    .prefault(text)
    .describe(`${meaning} Default ${text}.`)

const size = (text: string, meaning: string) =>
  z
    .string(notSize)
    .regex(/^\d+(b|kb|mb|gb)$/, notSize)
    .transform(bytesOf)
    .refine((bytes) => bytes > 0 && bytes <= largestSize, 'must lie between 1b and 1024gb')
    .prefault(text)
    .describe(`${meaning} Default ${text}.`)

const environmentName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not the name of an environment variable')

const scalar = z.union([z.string(), z.number(), z.boolean()])

const webhookPath = z
  .string()
  .regex(
    /^(\/[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9._~!$&'()*+,;=:@-]*)+\/?$/,
    'not a URL path: it starts with / and has no space, %, ?, #, empty part or part that starts with a dot',
  )

export const webhookSchema = z.strictObject({
  path: webhookPath.describe(
    'URL path; one that does not begin with /webhook/ is served there too.',
  ),
  agent: z.string().describe('Name of an agent in agents.yaml.'),
  prompt_template: z
    .string()
    .regex(/\S/, 'the prompt is empty')
    .describe('The prompt; {{event.<path>}} is replaced by a value of the payload.'),
  secret_env: z
    .union([environmentName, z.array(environmentName).min(1)])
    .optional()
    .describe('Environment variable with the secret; a list while secrets are rotated.'),
  signature_header: z
    .string()
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'not a header name')
    .transform((name) => name.toLowerCase())
    .prefault('x-hub-signature-256')
    .describe('Header with the signature. Default x-hub-signature-256.'),
  signature_algo: z
    .enum(['sha256', 'sha1'])
    .default('sha256')
    .describe('HMAC algorithm. Default sha256.'),
  signature_prefix: z
    .string()
    .default('sha256=')
    .describe('What stands before the hex digits; may be empty. Default sha256=.'),
  filter: z
    .record(z.string(), z.union([scalar, z.array(scalar).min(1)]))
    .optional()
    .describe('Dot path to expected value, compared as strings; all must match; a list means any.'),
  deliver_to: z
    .union([z.string(), z.array(z.string()).min(1)])
    .optional()
    .describe(
      'none, log, notify:desktop, file:<path>, slack:#channel, telegram:<chat>, discord:<name>, email:<address>, github:<owner>/<repo>#<number> or http:<name>; a list delivers to each. Default none.',
    ),
  enabled: z.boolean().default(true).describe('Default true.'),
})

export const webhooksFileSchema = z.strictObject({
  webhooks: z.array(webhookSchema).describe('The webhook definitions.'),
})

const agentCommon = {
  timeout: duration('10m', 'Then SIGTERM, and 5 s later SIGKILL, to the whole process group.'),
  concurrency: z.int().min(1).max(64).default(1).describe('Runs at once of this agent. Default 1.'),
  output_limit: size('1mb', 'A longer answer is cut and marked.'),
}

export const agentSchema = z.discriminatedUnion('kind', [
  z
    .strictObject({
      kind: z.literal('echo').describe('Answers with the prompt.'),
      ...agentCommon,
    })
    .describe('Answers with the prompt; needs nothing.'),
  z
    .strictObject({
      kind: z.literal('command').describe('Runs a program; the prompt is its standard input.'),
      command: z
        .array(z.string())
        .min(1)
        .refine(([program]) => program !== '', 'the program has no name')
        .describe('Program and arguments; never a shell.'),
      cwd: z
        .string()
        .min(1)
        .optional()
        .describe('Working folder, ~ allowed. Default: an empty folder, removed afterwards.'),
      env: z
        .record(environmentName, z.string())
        .optional()
        .describe(
          'Added to the clean environment: a value, env:NAME for one of ours, or oauth:<provider> for a fresh access token.',
        ),
      ...agentCommon,
    })
    .describe('Runs a program; its standard output is the answer.'),
])

export const agentsFileSchema = z.strictObject({
  agents: z
    .record(z.string().regex(/^[A-Za-z0-9][\w.-]*$/, 'not an agent name'), agentSchema)
    .describe('The agents by name.'),
})

const port = z.int().min(0).max(65_535)

const secureUrl = z
  .string()
  .refine(
    (text) => isSecureOrLoopback(text),
    'not an https URL (http is accepted for a loopback address only)',
  )

const isSecureOrLoopback = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackUrl(text))
}

/** True for a URL of this machine itself, where plain http is no risk. */
export const isLoopbackUrl = (url: string): boolean =>
  /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(new URL(url).hostname)

/** The providers that are known without an entry in gateway.yaml. */
export const builtInProviders = ['google', 'github', 'slack'] as const
export type BuiltInProvider = (typeof builtInProviders)[number]

/** The ways in which providers leave the OAuth standard. */
export const dialectNames = ['standard', 'google', 'github', 'slack'] as const
export type DialectName = (typeof dialectNames)[number]

export const providerSchema = z.strictObject({
  issuer: secureUrl.optional().describe('OpenID Connect or RFC 8414 issuer, for discovery.'),
  authorization_endpoint: secureUrl.optional(),
  token_endpoint: secureUrl.optional(),
  revocation_endpoint: secureUrl.optional(),
  userinfo_endpoint: secureUrl.optional(),
  device_authorization_endpoint: secureUrl
    .optional()
    .describe('For oauth login --device (RFC 8628).'),
  dialect: z
    .enum(dialectNames)
    .optional()
    .describe('How the provider speaks OAuth: standard, google, github or slack.'),
  api_url: secureUrl
    .transform((url) => url.replace(/\/+$/, ''))
    .optional()
    .describe('Base of the API that a dialect asks who is logged in, and revokes at.'),
  scopes: z.array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'not a scope')).optional(),
  client_id: z.string().min(1).optional(),
  client_secret_env: environmentName.optional(),
  redirect_host: z
    .enum(['127.0.0.1', 'localhost'])
    .optional()
    .describe('Host of the redirect URI. Default 127.0.0.1.'),
  callback_port: port
    .optional()
    .describe('Port of the redirect URI of this provider. Default: oauth.callback_port.'),
})

const apiUrl = (base: string) =>
  secureUrl
    .transform((url) => url.replace(/\/+$/, ''))
    .optional()
    .describe(`Base of the API, where it is not ${base}.`)

const tokenName = (provider: string) =>
  environmentName
    .optional()
    .describe(`Environment variable with the token. Default: the login of ${provider}.`)

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'not a header name')
  .refine(
    (name) => !/^(host|content-(length|type)|transfer-encoding|connection|webhook-.*)$/i.test(name),
    'a header that doorward sets itself',
  )

const plainUrl = z.string().refine((text) => {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, hash } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === '' && hash === ''
}, 'not an http or https URL without a user name')

const named = <Entry extends z.ZodType>(entry: Entry, meaning: string) =>
  z
    .record(z.string().regex(entryName, 'not a name of a target'), entry)
    .default({})
    .describe(meaning)

export const targetsSchema = z.strictObject({
  slack: z
    .strictObject({ token_env: tokenName('slack'), api_url: apiUrl('https://slack.com/api') })
    .prefault({}),
  telegram: z
    .strictObject({
      token_env: environmentName
        .optional()
        .describe('Environment variable with the token of the bot. Needed.'),
      me: z
        .union([z.int(), z.string()], 'not a chat: write its number, or @name')
        .transform(String)
        .refine(isTelegramChat, 'not a chat: write its number, or @name')
        .optional()
        .describe('The chat that telegram:@me stands for.'),
      api_url: apiUrl('https://api.telegram.org'),
    })
    .prefault({}),
  discord: named(
    z.strictObject({
      url_env: environmentName.describe('Environment variable with the URL of the webhook.'),
    }),
    'Webhooks of Discord by name.',
  ),
  email: z
    .strictObject({
      smtp_url_env: environmentName
        .optional()
        .describe(
          'Environment variable with smtps://user:password@host:465 or smtp://user:password@host:587. Default: Gmail, by the login of google.',
        ),
      from: z
        .string()
        .refine(
          (text) =>
            isMailAddress(text) || isMailAddress(/^[^<>\p{Cc}]+ <(.+)>$/u.exec(text)?.[1] ?? ''),
          'not one mail address: write me@example.com or Name <me@example.com>',
        )
        .optional()
        .describe('Who the mail comes from. Needed with smtp_url_env.'),
      api_url: apiUrl('https://gmail.googleapis.com'),
    })
    .refine(({ smtp_url_env: smtp, from }) => smtp === undefined || from !== undefined, {
      message: 'missing: mail by SMTP needs a sender',
      path: ['from'],
    })
    .prefault({}),
  github: z
    .strictObject({ token_env: tokenName('github'), api_url: apiUrl('https://api.github.com') })
    .prefault({}),
  http: named(
    z.strictObject({
      url: plainUrl.describe('Where to POST to. Redirects are not followed.'),
      secret_env: environmentName.describe(
        'Environment variable with the secret of Standard Webhooks: whsec_ and base64.',
      ),
      headers: z
        .record(headerName, z.string().regex(/^[\t\x20-\x7e]*$/, 'not a header value'))
        .optional()
        .describe('Added to the request: a value, or env:NAME.'),
    }),
    'Receivers of signed POST requests by name.',
  ),
})

/** The hosts that only this machine can reach and that our own clients may name in `Host`. */
export const loopbackHosts = ['127.0.0.1', '::1', 'localhost'] as const

/** The hosts that listen on all addresses, loopback among them. */
export const allHosts = ['0.0.0.0', '::'] as const

export const gatewayFileSchema = z.strictObject({
  server: z
    .strictObject({
      host: z.string().min(1).default('127.0.0.1').describe('Default 127.0.0.1.'),
      port: port
        .default(18_789)
        .describe('Default 18789; 0 takes any free port; DOORWARD_PORT overrides it.'),
      public_url: secureUrl
        .optional()
        .describe('How the internet reaches the webhooks: your tunnel.'),
      body_limit: size('25mb', 'Larger webhook bodies are refused.'),
      allow_remote: z
        .boolean()
        .default(false)
        .describe('Lets host be an address that others reach; they get webhooks and nothing else.'),
    })
    .prefault({}),
  oauth: z
    .strictObject({
      callback_port: port
        .default(53_174)
        .describe('Default 53174; 0 takes any free port, where the provider allows that.'),
      login_timeout: duration('10m', 'How long a login waits for you.'),
      refresh_ahead: duration('5m', 'How long before its end an access token is renewed.'),
    })
    .prefault({}),
  queue: z
    .strictObject({
      max_events: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(1000)
        .describe('Events waiting. Default 1000.'),
      max_bytes: size('256mb', 'Bodies being read and events waiting, together.'),
      concurrency: z
        .int()
        .min(1)
        .max(256)
        .default(4)
        .describe('Agents running at once. Default 4.'),
      drain_timeout: duration('30s', 'How long a stop waits for what was accepted.'),
    })
    .prefault({}),
  events: z
    .strictObject({
      keep: z
        .int()
        .min(1)
        .max(100_000)
        .default(200)
        .describe('Events kept in memory. Default 200.'),
    })
    .prefault({}),
  providers: z
    .record(
      z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'not a provider name (a-z, 0-9, - and _)'),
      providerSchema,
    )
    .default({})
    .describe('Overrides of google, github and slack, and providers of your own.'),
  targets: targetsSchema
    .prefault({})
    .describe('What targets of deliver_to need, beyond their names.'),
})

export type WebhookEntry = z.output<typeof webhookSchema>
export type Agent = z.output<typeof agentSchema>
export type CommandAgent = Extract<Agent, { kind: 'command' }>
export type ProviderEntry = z.output<typeof providerSchema>
export type Gateway = z.output<typeof gatewayFileSchema>
export type TargetSettings = z.output<typeof targetsSchema>

/** The three files by the name that commands and messages use. */
export const fileSchemas = {
  webhooks: webhooksFileSchema,
  agents: agentsFileSchema,
  gateway: gatewayFileSchema,
} as const

export type ConfigName = keyof typeof fileSchemas

/** The JSON Schema (draft 2020-12) of one configuration file, for editors. */
export const jsonSchemaOf = (name: ConfigName): object =>
  z.toJSONSchema(fileSchemas[name], { io: 'input' })
