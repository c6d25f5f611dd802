import { z } from 'zod'
import { DoorwardError } from '../errors.ts'
import { headerNameForm, loginNameForm } from '../config/name-forms.ts'
import { environmentName, secureUrl } from '../config/values.ts'
import { parseBodyTemplate, parseUrlTemplate, toUrl } from './http-templates.ts'

/*
 * The strict grammars of target addresses. They are checked when the configuration is loaded, and again
 * after values of an event are inserted, before anything is sent.
 * A new kind of target is a row of `addresses` and its keys in `targetsSchema`.
 */

/** The name of an entry of `targets.discord` and `targets.http`. */
const entryName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

const slackName = /^[#@](?=[^.-])[\p{L}\p{M}\p{N}._-]{1,80}$/u
// Channel, private group, direct message, user, also of an enterprise. Slack documents no length.
const slackId = /^@?[CDGUW][A-Z0-9]{2,20}$/
// The time stamp of the message that begins a thread: seconds and six digits.
const slackThread = /^[1-9]\d{8,10}\.\d{6}$/
const telegramChat = /^(-?[1-9]\d{0,18}|@[A-Za-z][A-Za-z0-9_]{3,31})$/
const githubIssue =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}#)[A-Za-z0-9._-]{1,100}#[1-9]\d{0,9}$/
const githubCommit =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}@)[A-Za-z0-9._-]{1,100}@([0-9a-f]{40}|[0-9a-f]{64})$/
// git-check-ref-format(1), and no other characters than branches usually have.
const pullRequest =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}(?:@|$))[A-Za-z0-9._-]{1,100}(?:@(?!.*(?:\.\.|\/\/|\/\.|\.lock(?:\/|$)))[A-Za-z0-9_][A-Za-z0-9_./#+-]{0,199}(?<![./]))?$/
// docs.gitlab.com/user/reserved_names: letters, digits, `_`, `-` and `.`, no `-` first, at most 20 groups.
const gitlabItem =
  /^(?:(?!\.+\/)[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}\/){1,20}(?!\.+[!#])[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}[!#][1-9]\d{0,9}$/
// support.atlassian.com, "Edit a project's details": letters, digits and `_`; servers may allow longer keys.
const jiraIssue = /^[A-Z][A-Z0-9_]{1,99}-[1-9]\d{0,9}$/
// By its identifier, or by its id.
const linearIssue = /^(?:[A-Z0-9]{1,20}-[1-9]\d{0,9}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/
// RFC 5321 without quoted local parts, and without % ! and |, which once routed mail to other hosts.
const localPart = /^(?=.{1,64}$)[A-Za-z0-9#$&'*+/=?^_~-]+(\.[A-Za-z0-9#$&'*+/=?^_~-]+)*$/
const domainLabel = /^[\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u

/** True for exactly one mail address, without comma, name, quote, space or line break. */
const isMailAddress = (text: string): boolean => {
  const at = text.lastIndexOf('@')
  const labels = text.slice(at + 1).split('.')
  return (
    at > 0 &&
    text.length <= 254 &&
    localPart.test(text.slice(0, at)) &&
    labels.every((label) => domainLabel.test(label))
  )
}

/** True for a Telegram chat: its number, or the public name of a channel or group. */
const isTelegramChat = (text: string): boolean => telegramChat.test(text)

/** True for a chat, or a topic of a group: the last number of the topic's link. */
const isTelegramAddress = (text: string): boolean =>
  isTelegramChat(text.replace(/\/[1-9]\d{0,9}$/, ''))

const isSlackAddress = (address: string): boolean => {
  const [channel = '', thread] = address.split('/', 2)
  const isChannel = slackId.test(channel) || slackName.test(channel)
  if (thread === undefined) return isChannel
  return (
    isChannel &&
    !channel.startsWith('@') &&
    address === `${channel}/${thread}` &&
    slackThread.test(thread)
  )
}

const isEntryName = (address: string): boolean => entryName.test(address)
const isGithubIssue = (address: string): boolean => githubIssue.test(address)

/** The kinds of target outside this machine, each with the form of its address, for messages, and its grammar. */
const addresses = {
  slack: {
    form: 'slack:#channel, slack:@user, slack:<id>, slack:<channel>/<thread_ts> or slack:reply',
    isValid: isSlackAddress,
  },
  telegram: {
    form: 'telegram:<chat id>, telegram:<chat id>/<topic>, telegram:@channel, telegram:@me or telegram:reply',
    isValid: isTelegramAddress,
  },
  discord: { form: 'discord:<name>, a name of targets.discord', isValid: isEntryName },
  email: { form: 'email:<address>, one address', isValid: isMailAddress },
  github: { form: 'github:<owner>/<repo>#<number>', isValid: isGithubIssue },
  'github-review': {
    form: 'github-review:<owner>/<repo>#<number>, of a pull request',
    isValid: isGithubIssue,
  },
  'github-check': {
    form: 'github-check:<owner>/<repo>@<commit>, by its full hash',
    isValid: (address) => githubCommit.test(address),
  },
  'pull-request': {
    form: 'pull-request:<owner>/<repo>, or pull-request:<owner>/<repo>@<branch> for another base than the default branch',
    isValid: (address) => pullRequest.test(address),
  },
  push: {
    form: 'push:<owner>/<repo>#<number>, of a pull request',
    isValid: isGithubIssue,
  },
  gitlab: {
    form: 'gitlab:<group>/<project>!<merge request> or gitlab:<group>/<project>#<issue>',
    isValid: (address) => gitlabItem.test(address),
  },
  'gitlab-review': {
    form: 'gitlab-review:<group>/<project>!<merge request>',
    isValid: (address) => address.includes('!') && gitlabItem.test(address),
  },
  'github-outputs': {
    form: 'outputs: on the rule, whose address is that of its event',
    isValid: (address) => isGithubIssue(address) || isGithubIssue(`${address}#1`),
  },
  'gitlab-outputs': {
    form: 'outputs: on the rule, whose address is that of its event',
    isValid: (address) => gitlabItem.test(address) || gitlabItem.test(`${address}#1`),
  },
  jira: {
    form: 'jira:<issue key>, or jira:reply',
    isValid: (address) => jiraIssue.test(address),
  },
  linear: {
    form: 'linear:<issue identifier>, or linear:reply',
    isValid: (address) => linearIssue.test(address),
  },
  http: { form: 'http:<name>, a name of targets.http', isValid: isEntryName },
} as const satisfies Readonly<
  Record<string, { readonly form: string; readonly isValid: (address: string) => boolean }>
>

export type SentKind = keyof typeof addresses
export const sentKinds = Object.keys(addresses) as SentKind[]

/** The requests of an answer, at GitHub or GitLab. */
export type OutputsKind = Extract<SentKind, `${string}-outputs`>
export const isOutputsKind = (kind: string): kind is OutputsKind =>
  kind === 'github-outputs' || kind === 'gitlab-outputs'

/** The form of an address of this kind, for messages. */
export const addressForm = (kind: SentKind): string => addresses[kind].form

/** True for a valid address of this kind. */
export const isAddress = (kind: SentKind, address: string): boolean =>
  addresses[kind].isValid(address)

const apiUrl = (base: string) =>
  secureUrl
    .transform((url) => url.replace(/\/+$/, ''))
    .optional()
    .describe(`Base URL of the API. Default ${base}.`)

const tokenEnv = (provider: string) =>
  environmentName
    .optional()
    .describe(`Environment variable with the token. Default: the login of ${provider}.`)

const login = (provider: string) =>
  z
    .string()
    .regex(loginNameForm, `not the name of a login: write ${provider}, or ${provider}@work`)
    .optional()
    .describe(`The login whose token is used, such as ${provider}@work. Default ${provider}.`)

const isOnlyOne = (one: string | undefined, other: string | undefined): boolean =>
  one === undefined || other === undefined

const oneToken = { message: 'not used beside token_env: remove one of them', path: ['login'] }

const addedHeader = z
  .string()
  .regex(headerNameForm, 'not a header name')
  .refine(
    (name) => !/^(host|content-(length|type)|transfer-encoding|connection|webhook-.*)$/i.test(name),
    'doorward sets this header',
  )

/** A text that `parse` takes. */
const templateText = (parse: (text: string) => unknown) =>
  z.string().superRefine((text, context) => {
    try {
      parse(text)
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      const hint = error.hint === undefined ? '' : ` (${error.hint})`
      context.addIssue({ code: 'custom', message: `${error.message}${hint}` })
    }
  })

const plainUrl = templateText((text) => {
  const url = toUrl(parseUrlTemplate(text))
  const isPlain = url && url.username === '' && url.password === '' && url.hash === ''
  if (isPlain && /^https?:$/.test(url.protocol)) return
  throw new DoorwardError('config-invalid', 'not an http or https URL without a user name')
})

const recordOf = <Entry extends z.ZodType>(entry: Entry, meaning: string) =>
  z
    .record(z.string().regex(entryName, 'not the name of a target'), entry)
    .default({})
    .describe(meaning)

/** `targets:` of gateway.yaml. */
export const targetsSchema = z.strictObject({
  slack: z
    .strictObject({
      token_env: tokenEnv('slack'),
      login: login('slack'),
      api_url: apiUrl('https://slack.com/api'),
    })
    .refine((slack) => isOnlyOne(slack.token_env, slack.login), oneToken)
    .prefault({}),
  telegram: z
    .strictObject({
      token_env: environmentName
        .optional()
        .describe('Environment variable with the token of the bot. Required.'),
      me: z
        .union([z.int(), z.string()], 'not a chat: write its number, or @name')
        .transform(String)
        .refine(isTelegramChat, 'not a chat: write its number, or @name')
        .optional()
        .describe('The chat that telegram:@me stands for.'),
      api_url: apiUrl('https://api.telegram.org'),
    })
    .prefault({}),
  discord: recordOf(
    z.strictObject({
      url_env: environmentName.describe('Environment variable with the URL of the webhook.'),
    }),
    'Discord webhooks by name.',
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
      login: login('google'),
      api_url: apiUrl('https://gmail.googleapis.com'),
    })
    .refine((email) => isOnlyOne(email.smtp_url_env, email.login), {
      message: 'not used beside smtp_url_env: remove one of them',
      path: ['login'],
    })
    .refine(({ smtp_url_env: smtp, from }) => smtp === undefined || from !== undefined, {
      message: 'missing: mail by SMTP needs a sender',
      path: ['from'],
    })
    .prefault({}),
  github: z
    .strictObject({
      token_env: tokenEnv('github'),
      login: login('github'),
      api_url: apiUrl('https://api.github.com'),
    })
    .refine((github) => isOnlyOne(github.token_env, github.login), oneToken)
    .prefault({}),
  gitlab: z
    .strictObject({
      token_env: tokenEnv('gitlab'),
      login: login('gitlab'),
      api_url: apiUrl('https://gitlab.com/api/v4'),
    })
    .refine((gitlab) => isOnlyOne(gitlab.token_env, gitlab.login), oneToken)
    .prefault({}),
  jira: z
    .strictObject({
      api_url: secureUrl
        .transform((url) => url.replace(/\/+$/, ''))
        .optional()
        .describe('URL of your site at Jira Cloud, such as https://acme.atlassian.net. Required.'),
      email: z
        .string()
        .refine(isMailAddress, 'not one mail address')
        .optional()
        .describe('The account that the token belongs to. Required.'),
      token_env: environmentName
        .optional()
        .describe('Environment variable with an API token of that account. Required.'),
    })
    .prefault({}),
  linear: z
    .strictObject({
      token_env: tokenEnv('linear'),
      login: login('linear'),
      api_url: apiUrl('https://api.linear.app/graphql'),
    })
    .refine((linear) => isOnlyOne(linear.token_env, linear.login), oneToken)
    .prefault({}),
  http: recordOf(
    z
      .strictObject({
        url: plainUrl
          .optional()
          .describe(
            'Where to POST to; url or url_env is required. {{event.<path>}} can be a whole segment of the path. Redirects are not followed.',
          ),
        url_env: environmentName
          .optional()
          .describe('Environment variable with the URL, where the URL is a secret.'),
        secret_env: environmentName
          .optional()
          .describe(
            'Environment variable with the secret of Standard Webhooks: whsec_ and base64. Required unless sign is false.',
          ),
        sign: z
          .boolean()
          .default(true)
          .describe('With false, requests are not signed. Default true.'),
        body_template: templateText(parseBodyTemplate)
          .optional()
          .describe(
            'Liquid that makes the JSON body, of result, event_id, webhook.path, delivery.received_at and event.<path>: {"text": {{ result | json }}}. Default: an event agent.answered.',
          ),
        headers: z
          .record(addedHeader, z.string().regex(/^[\t\x20-\x7e]*$/, 'not a header value'))
          .optional()
          .describe('Added to the request: a value, or env:NAME.'),
      })
      .refine(({ url, url_env: variable }) => url !== undefined || variable !== undefined, {
        message: 'missing: write url, or url_env where the URL is a secret',
        path: ['url'],
      })
      .refine(({ url, url_env: variable }) => isOnlyOne(url, variable), {
        message: 'not used beside url: remove one of them',
        path: ['url_env'],
      })
      .refine(({ sign, secret_env: secret }) => !sign || secret !== undefined, {
        message: 'missing: requests are signed with it, unless sign is false',
        path: ['secret_env'],
      })
      .refine(({ sign, secret_env: secret }) => sign || secret === undefined, {
        message: 'not used with sign: false',
        path: ['secret_env'],
      }),
    'Receivers of POST requests by name.',
  ),
})

export type TargetSettings = z.output<typeof targetsSchema>
