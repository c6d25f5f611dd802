import type { ConnectedHook, ConnectHook, PingedHook } from '../../../shared/api/hooks.ts'
import type { TokenSummary } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import {
  type HookProvider,
  repositorySchema,
  type SourceProvider,
  sourceProviders,
} from '../../../shared/config/source.ts'
import type { Config } from '../../../shared/config/load.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { didYouMean, toPlainLine } from '../../../shared/text.ts'
import { openConfig } from '../../../shared/config-edit/open-config.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { confirm } from '../../terminal/input.ts'
import { showWaiting } from '../../terminal/spinner.ts'
import { tableLines } from '../../terminal/table.ts'
import { type ConnectOptions, ensureEntry, writeSource } from './connect-entry.ts'

/*
 *   check at the sender -> entry and secret, if missing -> hook -> source of the entry -> ping
 *
 * Each step finds what an earlier run has done: the command is run again after any failure.
 */

/** A hook may take two requests with 15 s each, and a ping 15 s more. */
const hookMs = 60_000
const route = '/webhooks/hooks'

/**
 * Makes the hook of a repository or organisation, the webhook that it delivers to, and the secret. Throws
 * `usage`, and why the sender makes no hook; nothing is written then.
 */
export const connectWebhook = async (
  context: Context,
  [given = '', name = '']: readonly string[],
  { poll: wantsPoll, keyEnv, asBot, ...options }: ConnectOptions,
): Promise<void> => {
  const { terminal } = context
  const provider = parseProvider(given)
  if (asBot) return connectBot(context, provider, name)
  if (provider === 'stripe') {
    if (name !== '') throw new DoorwardError('usage', 'stripe has no repository: leave it out')
    const { connectStripe } = await import('./connect-stripe.ts')
    return connectStripe(context, {
      ...options,
      ...(wantsPoll && { poll: true }),
      ...(keyEnv !== undefined && { keyEnv }),
    })
  }
  if (keyEnv !== undefined) throw new DoorwardError('usage', '--key-env is for stripe only')
  const repository = parseRepository(provider, name)
  const { config } = await openConfig(context.home)
  const path =
    options.path ?? findConnected(config, provider, repository) ?? toPath(provider, repository)
  if (wantsPoll && provider === 'gitlab')
    throw new DoorwardError('usage', 'GitLab switches a hook off that reaches no address', {
      hint: 'leave out --poll, and open a way in: doorward tunnel',
    })
  const present = config.webhooks.find((webhook) => webhook.path === path)
  const poll = wantsPoll || present?.source?.mode === 'poll'
  const request = { path, provider, repository, ...(poll && { poll }) }
  await withLogin(context, request, async (client) =>
    client.post(route, { ...request, check: true }, { timeoutMs: hookMs }),
  )
  const entry = await ensureEntry(context, request, options)
  const { made, pinged } = await withDaemon(context, async (client) => {
    await client.post('/daemon/reload')
    const made = await client.post<ConnectedHook>(route, request, { timeoutMs: hookMs })
    const hook = { provider, repository, hookId: made.hookId ?? 0 }
    await writeSource(context, { ...hook, ...(poll && { mode: 'poll' as const }) }, path)
    await client.post('/daemon/reload')
    // Notes the time from which deliveries can be missing.
    await client.get('/events/missed?fresh=true', { timeoutMs: hookMs })
    return poll ? { made } : { made, pinged: await ping(context, client, path) }
  })
  const report: Report = { ...made, ...request, ...entry, ...(pinged && { ping: pinged }) }
  if (terminal.json) terminal.printJson(report)
  else for (const line of reportLines(report)) terminal.print(line)
  const failure = findFailure(report)
  if (failure) throw failure
}

/** One hook for all repositories of the bot that is made, in place of one for this repository. */
const connectBot = async (
  context: Context,
  provider: SourceProvider,
  name: string,
): Promise<void> => {
  if (provider !== 'github') throw new DoorwardError('usage', '--as-bot is for github only')
  const repository = name === '' ? undefined : parseRepository(provider, name)
  const { createBot } = await import('../bot/create.ts')
  await createBot(context, [], { browser: true })
  const limit = repository === undefined ? '' : ` --repo ${repository}`
  context.terminal.say(`next: doorward webhook add github-review${limit}`)
}

type Report = ConnectedHook &
  ConnectHook & {
    readonly agent: string
    readonly isNew: boolean
    readonly ping?: PingedHook
  }

const reportLines = ({ state, repository, path, hookId, url, events, ...rest }: Report) =>
  tableLines([
    ['connected', `${repository}, hook ${hookId} ${state}`],
    ['webhook', `${path}${rest.isNew ? ', new in webhooks.yaml' : ''}`],
    ['address', rest.poll ? 'none: its deliveries are read from GitHub' : url],
    ['events', events?.join(', ') ?? ''],
    ['agent', rest.agent],
    ...(rest.ping?.event ? [['ping', describePing(rest.ping.event)]] : []),
  ])

const describePing = ({ id, state, detail }: NonNullable<PingedHook['event']>): string =>
  toPlainLine(
    state === 'rejected' ? `${id} was rejected` : `${id} arrived${detail ? `: ${detail}` : ''}`,
  )

const findFailure = ({ ping: pinged, url, path }: Report): DoorwardError | undefined => {
  if (!pinged) return undefined
  const { event, answer } = pinged
  if (event && event.state !== 'rejected') return undefined
  if (event)
    return new DoorwardError(
      'signature-invalid',
      `the ping came to ${path} and was rejected: ${toPlainLine(event.detail ?? event.code ?? '')}`,
      { hint: `doorward events show ${event.id}` },
    )
  const reason = answer === undefined ? '' : `; the sender says: ${toPlainLine(answer)}`
  return new DoorwardError(
    'source-failed',
    `the hook is made, but its ping did not arrive at ${toPlainLine(url)}${reason}`,
    { hint: 'does the tunnel run, and lead to server.public_port? doorward doctor --online' },
  )
}

export const parseProvider = (given: string): SourceProvider => {
  const provider = sourceProviders.find((known) => known === given)
  if (provider) return provider
  throw new DoorwardError('usage', `hooks of "${toPlainLine(given)}" cannot be made by command`, {
    hint:
      didYouMean(given, sourceProviders) ??
      `those of ${sourceProviders.join(', ')} can; for others: doorward webhook add`,
  })
}

const parseRepository = (provider: HookProvider, name: string): string => {
  if (name === '')
    throw new DoorwardError('usage', 'which repository or organisation?', {
      hint: `doorward webhook connect ${provider} OWNER/REPOSITORY`,
    })
  const { success, data, error } = repositorySchema.safeParse(name)
  const isTooDeep = provider === 'github' && data !== undefined && data.split('/').length > 2
  if (success && !isTooDeep) return data
  throw new DoorwardError(
    'usage',
    `"${toPlainLine(name).slice(0, 100)}" is ${error?.issues[0]?.message ?? 'not owner/repository'}`,
    { hint: `doorward webhook connect ${provider} ${findName(provider, name)}` },
  )
}

/** The name in a URL that was copied from a browser or from git. */
const findName = (provider: HookProvider, url: string): string => {
  const name = url.replace(/^(https?:\/\/|git@)[^/:]+[/:]|(\.git)?\/?$/g, '')
  const own = provider === 'github' ? name.split('/').slice(0, 2).join('/') : name.split('/-/')[0]
  return repositorySchema.safeParse(own).data ?? 'OWNER/REPOSITORY'
}

/** `/webhook/github/acme/door` */
const toPath = (provider: SourceProvider, repository: string): string =>
  `/webhook/${provider}/${repository.replaceAll(/\/\.+/g, '/').toLowerCase()}`

const findConnected = (config: Config, provider: string, repository: string): string | undefined =>
  config.webhooks.find(
    ({ source }) =>
      source?.provider === provider && source.repository.toLowerCase() === repository.toLowerCase(),
  )?.path

/** Asks the sender; where the login lacks a scope, asks the owner for a further login and asks again. */
const withLogin = async (
  context: Context,
  { provider }: ConnectHook,
  check: (client: Client) => Promise<unknown>,
): Promise<void> => {
  try {
    await withDaemon(context, check)
  } catch (error) {
    const { terminal } = context
    if (!(error instanceof DoorwardError) || error.code !== 'scope-missing') throw error
    const { provider: login, scope } = error.about ?? {}
    if (login === undefined || scope === undefined) throw error
    if (!process.stdin.isTTY || !terminal.isInteractive) throw error
    terminal.say(error.message)
    const question = `log in to ${provider} again, with ${scope}?`
    const words = { question, refusal: error.message, interrupted: 'nothing was made' }
    if (!(await confirm(words, terminal))) throw error
    await logInAgain(context, login, scope)
    await withDaemon(context, check)
  }
}

/** Logs in with the scopes of the login that is there, and the missing one. */
const logInAgain = async (context: Context, login: string, scope: string): Promise<void> => {
  const { tokens } = await withDaemon(context, (client) =>
    client.get<{ tokens: TokenSummary[] }>('/oauth/tokens'),
  )
  const token = tokens.find(
    ({ provider, default: isDefault }) => provider.split('@')[0] === login && isDefault,
  )
  const { provider = login, scopes = [] } =
    token ?? tokens.find(({ provider: name }) => name === login) ?? {}
  const { login: logIn } = await import('../oauth/login.ts')
  await logIn(context, [provider], { browser: true, scopes: [...scopes, scope].join(',') })
}

const ping = async ({ terminal }: Context, client: Client, path: string): Promise<PingedHook> => {
  const waiting = await showWaiting('waiting for the ping', terminal, {
    signal: new AbortController().signal,
    interrupt: 'leaves; the hook stays',
  })
  try {
    return await client.post<PingedHook>(`${route}/ping`, { path }, { timeoutMs: hookMs })
  } finally {
    waiting.stop()
  }
}
