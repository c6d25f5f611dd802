import { z } from 'zod'
import { schedulesFileSchema } from '../schedules/schema.ts'
import { budgetSchema } from '../agents/budget.ts'
import { agentSchema } from '../agents/schema.ts'
import { approveSchema } from '../approve/approve.ts'
import { providerNameForm, scopeForm } from './name-forms.ts'
import { targetsSchema } from '../targets/schema.ts'
import {
  duration,
  durationOrOff,
  environmentName,
  linkHosts,
  machineRole,
  secureBaseUrl,
  secureUrl,
  size,
} from './values.ts'
import { webhookSchema } from './webhook-schema.ts'

export type { Agent, CommandAgent } from '../agents/schema.ts'
export { isLoopbackUrl } from '../net.ts'
export type { TargetSettings } from '../targets/schema.ts'

/*
 * The schemas of the three configuration files. They check what is loaded and generate the JSON Schema
 * files for editors.
 */

export const webhooksFileSchema = z.strictObject({
  webhooks: z.array(webhookSchema).describe('The webhook definitions.'),
})

export const agentName = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.-]*$/,
    'not an agent name (letters, digits, - _ and ., with a letter or a digit first)',
  )

export const agentsFileSchema = z.strictObject({
  agents: z.record(agentName, agentSchema).describe('The agents by name.'),
})

const port = z.int().min(0).max(65_535)

/** How providers deviate from the OAuth standard. */
export const dialectNames = ['standard', 'google', 'github', 'slack'] as const
export type DialectName = (typeof dialectNames)[number]

export const providerSchema = z.strictObject({
  issuer: secureUrl.optional().describe('OpenID Connect or RFC 8414 issuer, for discovery.'),
  authorization_endpoint: secureUrl
    .optional()
    .describe('Where the browser is sent. Default: as discovered from the issuer.'),
  token_endpoint: secureUrl
    .optional()
    .describe(
      'Where codes and refresh tokens are exchanged. For a built-in provider this means another server: its other endpoints and `api_url` are then ignored. Default: as discovered.',
    ),
  revocation_endpoint: secureUrl
    .optional()
    .describe('Where a logout revokes (RFC 7009). Default: as discovered.'),
  userinfo_endpoint: secureUrl
    .optional()
    .describe('Where doorward asks who is logged in. Default: as discovered.'),
  device_authorization_endpoint: secureUrl
    .optional()
    .describe('For oauth login --device (RFC 8628). Default: as discovered; github has one.'),
  dialect: z
    .enum(dialectNames)
    .optional()
    .describe(
      'The variant of OAuth: standard, google, github or slack. Default standard; built-in providers have their own.',
    ),
  api_url: secureUrl
    .transform((url) => url.replace(/\/+$/, ''))
    .optional()
    .describe('Base URL of the API where a dialect asks who is logged in, and revokes.'),
  scopes: z
    .array(z.string().regex(scopeForm, 'not a scope'))
    .optional()
    .describe('The scopes that a login requests. Default: those of the built-in provider.'),
  client_id: z
    .string()
    .min(1)
    .optional()
    .describe('The OAuth client of a login. Default: that of the last login.'),
  client_secret_env: environmentName
    .optional()
    .describe('Environment variable with the client secret. Default: that of the last login.'),
  token_auth: z
    .enum(['basic', 'post'])
    .optional()
    .describe(
      'How the client secret is sent: by HTTP Basic, or in the body. Default: as discovered, and the other way where the client is refused.',
    ),
  redirect_host: z
    .enum(['127.0.0.1', 'localhost'])
    .optional()
    .describe('Host of the redirect URI. Default 127.0.0.1; localhost for microsoft and notion.'),
  redirect_path: z
    .string()
    .max(100)
    .regex(/^(?!\/done(\/|$))(\/[\w~-][\w.~-]*)+$/, 'not a path such as /example/callback')
    .optional()
    .describe(
      'Path of the redirect URI, as registered at the provider. One that no other provider has keeps the logins of several apart. Default /callback.',
    ),
  git_hosts: z
    .array(
      z
        .string()
        .regex(
          /^[a-z0-9][a-z0-9.-]*(:\d{1,5})?$/i,
          'not a host such as git.corp.example or git.corp.example:8443',
        ),
    )
    .optional()
    .describe('Hosts to which oauth git-credential sends the token of this provider, over https.'),
})

/** Hosts that only this machine can reach, also allowed in the `Host` header of local clients. */
export const loopbackHosts = ['127.0.0.1', '::1', 'localhost'] as const

/** Hosts for all addresses, including loopback. */
export const allHosts = ['0.0.0.0', '::'] as const

export const gatewayFileSchema = z.strictObject({
  server: z
    .strictObject({
      host: z
        .string()
        .min(1)
        .default('127.0.0.1')
        .describe('Address to listen on. Default 127.0.0.1.'),
      port: port
        .default(18_789)
        .describe(
          'Port to listen on; 0 takes any free port, DOORWARD_PORT overrides it. Default 18789.',
        ),
      public_port: port
        .optional()
        .describe('A second port for webhooks only, to point a tunnel at. Default: none.'),
      public_url: secureBaseUrl
        .optional()
        .describe(
          'The public address of the webhooks, such as that of your tunnel; doorward tunnel writes it. Default: none.',
        ),
      body_limit: size('25mb', 'Larger webhook bodies are refused.'),
      allow_remote: z
        .boolean()
        .default(false)
        .describe(
          'Allows a host that other machines can reach; they get webhooks only. Default false.',
        ),
    })
    .prefault({}),
  oauth: z
    .strictObject({
      callback_port: port
        .default(53_174)
        .describe(
          'Port of the login callback, open only while a login waits; 0 takes any free port, if the provider allows it. Default 53174.',
        ),
    })
    .prefault({}),
  tokens: z
    .strictObject({
      store: z
        .enum(['file', 'keychain'])
        .default('file')
        .describe(
          'file: plain files of mode 0600. keychain: the same files, sealed with a key in the keychain of your desktop. Default file.',
        ),
    })
    .prefault({}),
  queue: z
    .strictObject({
      max_events: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(1000)
        .describe('Maximum number of waiting events. Default 1000.'),
      max_bytes: size('256mb', 'Maximum size of bodies being read and events waiting.'),
      concurrency: z
        .int()
        .min(1)
        .max(256)
        .default(4)
        .describe('Agents that run in parallel. Default 4.'),
      drain_timeout: duration('30s', 'How long a stop waits for accepted events.'),
      engine: z
        .enum(['memory', 'nats'])
        .default('memory')
        .describe(
          'memory: one machine. nats: several machines, over NATS JetStream. Default memory.',
        ),
      role: machineRole
        .prefault('both')
        .describe(
          'With nats: a receiver (formerly door) takes webhooks and delivers answers, a worker runs agents. Default both.',
        ),
      lost_after: duration(
        '1m',
        'With nats: the runs of a machine that is silent for so long go to another one.',
      ).refine((ms) => ms >= 1000, 'must be at least 1s'),
      servers_env: environmentName
        .default('NATS_URL')
        .describe(
          'With nats: the variable with the addresses of its servers, separated by commas. Default NATS_URL.',
        ),
      key_env: environmentName
        .default('DOORWARD_QUEUE_KEY')
        .describe(
          'With nats: the variable with the key that seals prompts and answers, the same on all machines: base64 of 32 bytes. While it is replaced a list, separated by commas: the first seals, all open. Default DOORWARD_QUEUE_KEY.',
        ),
      creds_env: environmentName
        .optional()
        .describe(
          'With nats: the variable with the path or the text of a .creds file. Default: none.',
        ),
      nkey_env: environmentName
        .optional()
        .describe('With nats: the variable with the seed of an nkey. Default: none.'),
      token_env: environmentName
        .optional()
        .describe('With nats: the variable with the token of the server. Default: none.'),
      ca_env: environmentName
        .optional()
        .describe(
          'With nats: the variable with the path of a PEM file of the authority that signs its certificate. Default: that of Node.',
        ),
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
      history: z
        .strictObject({
          keep: durationOrOff(
            '30d',
            'How long finished events are kept on the disk, in history/; off keeps nothing there.',
          ),
          contents: z
            .enum(['none', 'sealed'])
            .default('none')
            .describe(
              'What is kept: none, which is times, names, codes and numbers, or sealed, which is also titles, prompts and answers, sealed with a key that is in the keychain where tokens.store is, else in run/. Default none.',
            ),
        })
        .prefault({}),
    })
    .prefault({}),
  sessions: z
    .strictObject({
      store: z
        .enum(['memory', 'sealed'])
        .default('memory')
        .describe(
          'Where the conversations of session are: memory, which a stop loses, or sealed, in files that only a key opens: in the keychain where tokens.store is, else in run/. Default memory.',
        ),
    })
    .prefault({}),
  budget: budgetSchema
    .optional()
    .describe('What all runs together may cost: a map of run, day or month. Default: no limit.'),
  approve: approveSchema
    .optional()
    .describe(
      'Whether you are asked before an answer of any rule leaves this machine; what a rule says wins. Default false.',
    ),
  allowed_links: linkHosts.describe(
    "Hosts whose links and images stay in answers of all rules at GitHub and GitLab, beside the server's own. Default: none.",
  ),
  workspaces: z
    .strictObject({
      max_size: size(
        '10gb',
        'Mirrors of repositories that were not used for longest are removed above it.',
      ),
    })
    .prefault({}),
  providers: z
    .record(
      z.string().regex(providerNameForm, {
        error: ({ input }) =>
          String(input).includes('@')
            ? 'not a provider name: an account needs no entry, only doorward oauth login --as NAME'
            : 'not a provider name (a-z, 0-9, - and _)',
      }),
      providerSchema,
    )
    .default({})
    .describe('Overrides of built-in providers, and your own providers.'),
  targets: targetsSchema.prefault({}).describe('Settings of targets in deliver_to.'),
})

export type ProviderEntry = z.output<typeof providerSchema>
export type Gateway = z.output<typeof gatewayFileSchema>

/** The files by the names in commands and messages. */
export const fileSchemas = {
  webhooks: webhooksFileSchema,
  agents: agentsFileSchema,
  gateway: gatewayFileSchema,
  schedules: schedulesFileSchema,
} as const

export type ConfigName = keyof typeof fileSchemas

/** The JSON Schema (draft 2020-12) of one configuration file, for editors. */
export const toJsonSchema = (name: ConfigName): object =>
  z.toJSONSchema(fileSchemas[name], { io: 'input' })
