import { z } from 'zod'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { findProvider, type Provider } from './providers.ts'

/**
 * The server that gave a login, kept in the files of the login, its client and its pending revocation. Nothing of
 * these goes to another server, whatever gateway.yaml says later. Endpoints count only where the configuration
 * names them: the metadata of the issuer may move the others.
 */
export const loginServerSchema = z.looseObject({
  issuer: z.string().optional(),
  tokenOrigin: z.string().optional(),
  revocationOrigin: z.string().optional(),
  apiUrl: z.string().optional(),
})
export type LoginServer = z.infer<typeof loginServerSchema>

/** A file of a login; one of an earlier version names no server. */
type OfServer = { readonly provider: string; readonly server?: LoginServer | undefined }

type Addresses = Pick<Provider, 'issuer' | 'tokenEndpoint' | 'revocationEndpoint' | 'apiUrl'>

/** The server of a provider as configured now. */
export const toLoginServer = ({
  issuer,
  tokenEndpoint,
  revocationEndpoint,
  apiUrl,
}: Addresses): LoginServer => ({
  ...(issuer !== undefined && { issuer: toAddress(issuer) }),
  ...(tokenEndpoint !== undefined && { tokenOrigin: new URL(tokenEndpoint).origin }),
  ...(revocationEndpoint !== undefined && { revocationOrigin: new URL(revocationEndpoint).origin }),
  ...(apiUrl !== undefined && { apiUrl: toAddress(apiUrl) }),
})

/** Without a slash at the end, and without a password that someone wrote into the URL. */
const toAddress = (url: string): string => {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

/** A server in a sentence: its issuer, else the origin of its token endpoint. */
export const describeServer = ({ issuer, tokenOrigin }: LoginServer): string =>
  issuer ?? tokenOrigin ?? 'another server'

/** A record of an earlier version belongs from now on to the server that is configured. */
export const withServer = <Record extends OfServer>(record: Record, gateway: Gateway): Record => {
  if (record.server) return record
  const server = findServer(record.provider, gateway)
  return server ? { ...record, server } : record
}

/** Undefined for a provider that is not configured: nothing can be sent to it. */
const findServer = (login: string, gateway: Gateway): LoginServer | undefined => {
  try {
    return toLoginServer(findProvider(login, gateway))
  } catch (error) {
    if (error instanceof DoorwardError) return undefined
    throw error
  }
}

/** Why a login cannot be used: gateway.yaml names another server than the one that gave it. */
export const findServerError = (
  { provider, server }: OfServer,
  gateway: Gateway,
): DoorwardError | undefined => {
  const configured = findServer(provider, gateway)
  const other = server && configured && findOtherAddress(server, configured)
  if (!server || other === undefined) return undefined
  return new DoorwardError(
    'needs-login',
    `the login to ${provider} belongs to ${describeServer(server)}, but the configuration names ${other}`,
    {
      hint: `doorward oauth login ${provider}, or correct the provider: doorward config edit gateway`,
      about: { provider },
    },
  )
}

/** Throws `needs-login` for the login of another server than the configured one. */
export const requireSameServer = (record: OfServer, gateway: Gateway): void => {
  const error = findServerError(record, gateway)
  if (error) throw error
}

/**
 * An address of the configuration that the server of a login does not have. An address that was added later
 * counts as the server's own on its host and on subdomains of it, such as the API of a GitHub Enterprise.
 */
export const findOtherAddress = (
  server: LoginServer,
  { issuer, tokenOrigin, revocationOrigin, apiUrl }: LoginServer,
): string | undefined => {
  if (issuer !== undefined && server.issuer !== undefined && issuer !== server.issuer) return issuer
  // Otherwise the metadata of the same issuer name the token endpoint.
  if (tokenOrigin !== undefined || issuer !== server.issuer) {
    const origin = tokenOrigin ?? toOrigin(issuer)
    if (origin !== getOrigin(server)) return origin
  }
  const isOwn = (origin: string | undefined, known: string | undefined): boolean =>
    origin === undefined || origin === known || isWithin(origin, getOrigin(server))
  if (!isOwn(revocationOrigin, server.revocationOrigin)) return revocationOrigin
  return isOwn(toOrigin(apiUrl), toOrigin(server.apiUrl)) ? undefined : apiUrl
}

const getOrigin = ({ tokenOrigin, issuer }: LoginServer): string | undefined =>
  tokenOrigin ?? toOrigin(issuer)

const toOrigin = (address: string | undefined): string | undefined =>
  address !== undefined && URL.canParse(address) ? new URL(address).origin : undefined

const isWithin = (origin: string, parent: string | undefined): boolean => {
  if (parent === undefined) return false
  const [host, above] = [new URL(origin).host, new URL(parent).host]
  return host === above || host.endsWith(`.${above}`)
}
