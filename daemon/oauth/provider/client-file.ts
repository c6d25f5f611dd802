import { readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { StartLogin } from '../../../shared/api.ts'
import { secretsOf } from '../../../shared/config/environment.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import { syncFolder, writeWhole } from '../../../shared/home/files.ts'
import { clientUnknown } from './client-unknown.ts'
import type { Provider } from './providers.ts'

/** The OAuth client a login is made with; without a secret it is a public one. */
export type Client = { readonly clientId: string; readonly clientSecret?: string }

const clientFileSchema = z.looseObject({
  clientId: z.string().min(1),
  clientSecret: z.string().min(1).optional(),
})

/** Remembers the client of a login in `clients/<provider>.json`, 0600, so that the next needs no flags. */
export const rememberClient = async (home: Home, provider: string, client: Client) => {
  try {
    await writeWhole(fileOf(home, provider), `${JSON.stringify(client, null, 2)}\n`)
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `cannot write the client of ${provider} to ${home.clients} (${systemCode(error)})`,
      { cause: error, hint: 'make the folder writable for you and see that the disk is not full' },
    )
  }
}

/** Forgets the remembered client, and what a killed daemon left of one half written. True when there was any. */
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

/** The client of the last login, or undefined. A file that is none of ours counts as none. */
const rememberedClient = async (home: Home, provider: string): Promise<Client | undefined> => {
  const text = await readSecretFile(fileOf(home, provider))
  if (text === undefined) return undefined
  try {
    const { clientId, clientSecret } = clientFileSchema.parse(JSON.parse(text))
    return { clientId, ...(clientSecret === undefined ? {} : { clientSecret }) }
  } catch {
    return undefined
  }
}

/**
 * The client to use: what the request says, else gateway.yaml and its environment variable, else what
 * the last login used. A secret is only taken together with its own client id, and an empty one means
 * none. Throws `client-unknown` when nothing names a client: that tells a person how to get one, with
 * the port that logins come back to where it is given.
 */
export const findClient = async (
  home: Home,
  provider: Provider,
  env: NodeJS.ProcessEnv,
  request: Pick<StartLogin, 'clientId' | 'clientSecret'> = {},
  callbackPort?: number,
): Promise<Client> => {
  const isComplete = request.clientId !== undefined && request.clientSecret !== undefined
  const remembered = isComplete ? undefined : await rememberedClient(home, provider.name)
  const sources = [request, configuredClient(provider, env), remembered ?? {}]
  const clientId = sources.find((source) => source.clientId)?.clientId
  if (!clientId) throw clientUnknown(provider, callbackPort)
  const own = sources.filter((source) => !source.clientId || source.clientId === clientId)
  const clientSecret = own.find((source) => source.clientSecret !== undefined)?.clientSecret
  return { clientId, ...(clientSecret ? { clientSecret } : {}) }
}

const configuredClient = (provider: Provider, env: NodeJS.ProcessEnv): Partial<Client> => {
  const secret = secretsOf(provider.clientSecretEnv ? [provider.clientSecretEnv] : [], env)[0]
  return {
    ...(provider.clientId === undefined ? {} : { clientId: provider.clientId }),
    ...(secret === undefined ? {} : { clientSecret: secret }),
  }
}

const fileOf = (home: Home, provider: string): string => join(home.clients, `${provider}.json`)
