import { existsSync } from 'node:fs'
import { readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { StartLogin } from '../../../shared/api/api.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { isLoginName } from '../../../shared/config/name-forms.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { syncFolder, writeFileAtomic } from '../../../shared/home/files.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import {
  describeServer,
  findOtherAddress,
  type LoginServer,
  loginServerSchema,
  toLoginServer,
  withServer,
} from './login-server.ts'
import type { Provider } from './providers.ts'

/** An OAuth client; without a secret it is a public one. */
export type Client = { readonly clientId: string; readonly clientSecret?: string }

const clientFileSchema = z.looseObject({
  /** Files of bots are in the same folder. */
  kind: z.undefined().optional(),
  clientId: z.string().min(1),
  clientSecret: z.string().min(1).optional(),
  /** The server that knows it; undefined in files of earlier versions. */
  server: loginServerSchema.optional(),
})

/** A client as its file has it. */
type RememberedClient = Client & { readonly server?: LoginServer | undefined }

/** Writes the client of a login to `clients/<provider>.json`, 0600, so that the next login needs no flags. */
export const rememberClient = async (home: Home, provider: string, client: RememberedClient) => {
  try {
    await writeFileAtomic(getFile(home, provider), `${JSON.stringify(client, null, 2)}\n`)
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `cannot write the client of ${provider} to ${home.clients} (${systemCode(error)})`,
      { cause: error, hint: 'make the folder writable for you and see that the disk is not full' },
    )
  }
}

/** A login, and the client of its tokens. */
type ClientUser = { readonly provider: string; readonly clientId: string }

/**
 * Remembers the client of a login that worked. An account uses the client of its provider, and has a file
 * only for another one. When the provider gets another client, its accounts keep the one of their tokens.
 */
export const rememberLoginClient = async (
  home: Home,
  provider: Provider,
  env: NodeJS.ProcessEnv,
  client: Client,
  accounts: readonly ClientUser[],
): Promise<void> => {
  const { name, key } = provider
  const own = { ...client, server: toLoginServer(provider) }
  const shared = await findClient(home, { ...provider, name: key }, env).catch(() => undefined)
  if (name !== key && shared) {
    const isShared =
      shared.clientId === client.clientId && shared.clientSecret === client.clientSecret
    if (isShared) await forgetClient(home, name)
    else await rememberClient(home, name, own)
    return
  }
  if (shared?.clientId !== client.clientId) await keepClientForAccounts(home, key, accounts)
  await rememberClient(home, key, own)
}

/** Gives the provider's remembered client to its accounts that use it: it will be replaced or forgotten. */
export const keepClientForAccounts = async (
  home: Home,
  provider: string,
  accounts: readonly ClientUser[],
): Promise<void> => {
  const client = await rememberedClient(home, provider).catch(() => undefined)
  for (const { provider: login, clientId } of accounts)
    if (client?.clientId === clientId && login !== provider && !existsSync(getFile(home, login)))
      await rememberClient(home, login, client)
}

/** Removes the remembered client and its temporary files. True when there was one. */
export const forgetClient = async (home: Home, provider: string): Promise<boolean> => {
  try {
    const names = (await readdir(home.clients)).filter((name) =>
      `${name}.`.startsWith(`${provider}.json.`),
    )
    for (const name of names) await unlink(join(home.clients, name))
    await syncFolder(home.clients)
    return names.length > 0
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

/**
 * Ties the clients that an earlier version remembered to the servers that are configured now. A file that cannot be
 * used stays as it is.
 */
export const adoptClients = async (home: Home, gateway: Gateway): Promise<void> => {
  const files = await readdir(home.clients).catch(() => [])
  for (const provider of files.map((name) => name.replace(/\.json$/, '')).filter(isLoginName)) {
    const client = await rememberedClient(home, provider).catch(() => undefined)
    const { server } = withServer({ provider, server: client?.server }, gateway)
    if (!client || client.server || !server) continue
    await rememberClient(home, provider, { ...client, server }).catch(() => undefined)
  }
}

/** The client of the last login; undefined also for a file that is not valid. */
const rememberedClient = async (
  home: Home,
  provider: string,
): Promise<RememberedClient | undefined> => {
  const text = await readSecretFile(getFile(home, provider))
  if (text === undefined) return undefined
  try {
    const { clientId, clientSecret, server } = clientFileSchema.parse(JSON.parse(text))
    return {
      clientId,
      ...(clientSecret === undefined ? {} : { clientSecret }),
      ...(server && { server }),
    }
  } catch {
    return undefined
  }
}

/**
 * The client to use: from the request, else the account's own, else from gateway.yaml and its environment
 * variable, else from the provider's last login. A secret is only used with its own client id, and a remembered
 * client with its own server; an empty secret means none. Throws `client-unknown`, which says how to get a client
 * with this callback port.
 */
export const findClient = async (
  home: Home,
  provider: Provider,
  env: NodeJS.ProcessEnv,
  request: Pick<StartLogin, 'clientId' | 'clientSecret'> = {},
  callbackPort?: number,
): Promise<Client> => {
  const isComplete = request.clientId !== undefined && request.clientSecret !== undefined
  const { name, key } = provider
  const configuredServer = toLoginServer(provider)
  let otherServer: LoginServer | undefined
  const remembered = async (name: string): Promise<Client | undefined> => {
    const client = isComplete ? undefined : await rememberedClient(home, name)
    const isOther =
      client?.server && findOtherAddress(client.server, configuredServer) !== undefined
    if (isOther) otherServer = client.server
    return isOther ? undefined : client
  }
  const ofAccount = name === key ? undefined : await remembered(name)
  const configured = configuredClient(provider, env)
  const sources = [request, ofAccount ?? {}, configured, (await remembered(key)) ?? {}]
  const clientId = sources.find((source) => source.clientId)?.clientId
  if (!clientId) throw clientUnknown(provider, callbackPort, otherServer)
  const own = sources.filter((source) => !source.clientId || source.clientId === clientId)
  const clientSecret = own.find((source) => source.clientSecret !== undefined)?.clientSecret
  return { clientId, ...(clientSecret ? { clientSecret } : {}) }
}

const configuredClient = (provider: Provider, env: NodeJS.ProcessEnv): Partial<Client> => {
  const secret = listSecrets(provider.clientSecretEnv ? [provider.clientSecretEnv] : [], env)[0]
  return {
    ...(provider.clientId === undefined ? {} : { clientId: provider.clientId }),
    ...(secret === undefined ? {} : { clientSecret: secret }),
  }
}

const getFile = (home: Home, provider: string): string => join(home.clients, `${provider}.json`)

/**
 * The error of a login without a client: what to create where, with which redirect URI, and the command that
 * then works. `callbackPort` is 0 for any free port; `otherServer` is that of a remembered client.
 */
export const clientUnknown = (
  provider: Provider,
  callbackPort = 0,
  otherServer?: LoginServer,
): DoorwardError => {
  const { name, title, app, clientPage } = provider
  const where = clientPage ?? title
  const uri = getRedirectUri(provider, callbackPort)
  const joint = app.create.includes(' with ') ? 'and' : 'with'
  const address = uri === undefined ? '' : ` ${joint} the ${app.redirectName} ${uri}`
  const create = `${app.create}${address} at ${where}`
  const secret = app.secret === 'required' ? ' --client-secret-stdin' : ''
  return new DoorwardError(
    'client-unknown',
    otherServer
      ? `the remembered OAuth client of ${name} belongs to ${describeServer(otherServer)}, and is not sent to another server`
      : `no OAuth client is known for ${name}: a login needs one of your own`,
    { hint: `${create}, then: doorward oauth login ${name} --client-id ID${secret}` },
  )
}

/** The redirect URI to register; undefined where a provider needs none. */
const getRedirectUri = (
  { redirectHost, redirectPath, app }: Provider,
  callbackPort: number,
): string | undefined => {
  if (app.redirect === 'none') return undefined
  const own = app.redirect === 'any-port' ? 0 : callbackPort
  const { origin } = new URL(`http://${redirectHost}:${own}`)
  return `${origin.replace(/:0$/, '')}${redirectPath}`
}
