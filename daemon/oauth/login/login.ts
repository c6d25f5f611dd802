import { once } from 'node:events'
import type { Login, StartedDeviceLogin, StartedLogin, StartLogin } from '../../../shared/api.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { knownError } from '../../util/assets.ts'
import { trackPending } from '../../util/concurrency.ts'
import { wait as waitByClock } from '../dependencies.ts'
import { findClient } from '../providers/client-store.ts'
import type { Discover } from '../providers/discovery.ts'
import { refusalError } from '../providers/errors.ts'
import { findProvider } from '../providers/providers.ts'
import { isLoginOver, type TokenRecord } from '../tokens/token-record.ts'
import {
  authorizeUrl,
  exchangeCode,
  readCallback,
  readPasted,
  readState,
} from './authorization-code.ts'
import { loadCallbackPage, resultPage } from './callback-page.ts'
import { createAnswerCallback, createCallbackListener, type Lease } from './callback-server.ts'
import { createDeviceLogins } from './device-flow.ts'
import {
  type Attempt,
  type Authorized,
  type CodeAttempt,
  createPendingLogins,
  type Outcome,
  randomText,
  clientFlags,
  withTypedClient,
} from './pending-logins.ts'
import { createSaveGrant, readReplaced, type SaveParts } from './save-grant.ts'

export type Logins = {
  readonly start: (request: StartLogin) => Promise<StartedLogin | StartedDeviceLogin>
  readonly view: (loginId: string) => Login
  readonly untilEnd: (loginId: string, timeoutMs: number, signal: AbortSignal) => Promise<void>
  readonly paste: (loginId: string, url: string) => Promise<Login>
  readonly cancel: (loginId: string) => void
  /** Refuses new ones from now on, for a stop that would cut them off; what waits goes on. */
  readonly takeNoMore: () => void
  /** Cancels what waits, within seconds; tokens that come late are revoked or kept for that. */
  readonly close: (why: string) => Promise<void>
}

type Parts = SaveParts & { readonly discover: Discover }

/*
 * One login. start: provider, client, endpoints, state and verifier, then the callback listener, and
 * only then the authorization URL. The person approves, and the browser comes to the callback: state
 * first, then issuer, error and code. The code is exchanged, the tokens are written to the disk, and
 * only then the page says success. What does not fit is refused, and the login keeps waiting.
 * A login by device code comes to its grant in another way (device-login.ts), and ends as this one.
 */
export const createLogins = (parts: Parts): Logins => {
  const { dependencies, discover, revocations, broker } = parts
  const { home, gateway, env, log, announce, wait = waitByClock } = dependencies
  const closing = new AbortController()
  const breakingOff = new AbortController()
  const unfinished = trackPending()
  const leases = new Map<string, Lease>()
  const holds = new Map<string, () => void>()

  let takesMore = true

  const refuseWhenStopping = (): void => {
    if (takesMore) return
    throw new DoorwardError('stopping', 'the daemon is stopping, and takes no new login', {
      hint: 'doorward daemon start waits for its end and starts the next one: log in then',
    })
  }

  const start: Logins['start'] = async (request) => {
    refuseWhenStopping()
    const provider = findProvider(request.provider, gateway)
    const { callback_port: port } = gateway.oauth
    const client = await findClient(home, provider, env, request, port)
    const known = await findClient(home, provider, env).catch(() => undefined)
    const before =
      broker.unsaved(provider.name) ?? (await readReplaced(dependencies, provider.name))
    const { scopes, areScopesChosen } = scopesToAsk({
      chosen: request.scopes,
      provider,
      client,
      before,
      now: Date.now(),
    })
    const who = { provider, client, typedClient: clientFlags(client, known), areScopesChosen }
    const endpoints = await discover(provider, closing.signal)
    if (request.device) {
      const started = await devices.start({ ...who, endpoints }, scopes).catch((error: unknown) => {
        if (!(error instanceof DoorwardError)) throw error
        throw withTypedClient(error, provider.name, who.typedClient)
      })
      log.info({ provider: provider.name }, 'login by device code started')
      return started
    }
    const lease = await listener.open(provider.redirectHost, provider.callbackPort ?? port)
    if (!takesMore) lease.release()
    refuseWhenStopping()
    const now = Date.now()
    const attempt: CodeAttempt = {
      kind: 'code',
      loginId: randomText(),
      ...who,
      endpoints,
      scopes,
      state: randomText(),
      codeVerifier: randomText(),
      redirectUri: lease.redirectUri,
      expiresAt: now + gateway.oauth.login_timeout,
      control: new AbortController(),
    }
    leases.set(attempt.loginId, lease)
    pending.add(attempt, now)
    log.info({ provider: provider.name }, 'login started')
    return {
      loginId: attempt.loginId,
      provider: provider.name,
      authorizationUrl: authorizeUrl(endpoints.server.authorization_endpoint, provider, {
        ...attempt,
        clientId: client.clientId,
      }),
      redirectUri: attempt.redirectUri,
      scopes: [...attempt.scopes],
      expiresAt: new Date(attempt.expiresAt).toISOString(),
    }
  }

  /** Finishes the login of a valid answer; throws, and lets it wait, when the answer is none. */
  const complete = async (attempt: CodeAttempt, parameters: URLSearchParams): Promise<Outcome> => {
    const { server, isIssuerKnown } = attempt.endpoints
    const answer = readCallback(parameters, {
      issuer: isIssuerKnown ? server.issuer : undefined,
      issuerRequired: server.authorization_response_iss_parameter_supported === true,
      authorizationEndpoint: server.authorization_endpoint,
    })
    pending.consume(attempt)
    if (answer.kind === 'error')
      return pending.settle(attempt, {
        status: 'failed',
        error: refusalError(attempt, answer.error),
      })
    // A code that is out is exchanged to the end, also when nobody waits for it any more: the tokens it
    // brings must be revoked then, and not lost.
    const work = unfinished.track(exchangeAndSave(attempt, parameters))
    return Promise.race([work, untilCancelled(attempt)])
  }

  const untilCancelled = async (attempt: CodeAttempt): Promise<Outcome> => {
    const { signal } = attempt.control
    if (!signal.aborted) await once(signal, 'abort')
    return pending.settle(attempt, cancelled)
  }

  const toldError = (error: unknown): DoorwardError => {
    if (!(error instanceof DoorwardError)) log.error({ error: errorName(error) }, 'login failed')
    return knownError(error)
  }

  const exchangeAndSave = async (
    attempt: CodeAttempt,
    parameters: URLSearchParams,
  ): Promise<Outcome> => {
    const { signal } = breakingOff
    try {
      const grant = await exchangeCode({ ...attempt, parameters }, signal)
      return pending.settle(attempt, await saveGrant(attempt, grant, signal))
    } catch (error) {
      return pending.settle(attempt, { status: 'failed', error: toldError(error) })
    }
  }

  const finishInBrowser = async (parameters: URLSearchParams, host: string) => {
    const attempt = pending.findByState(readState(parameters))
    if (!attempt || new URL(attempt.redirectUri).host !== host)
      throw new DoorwardError('callback-invalid', 'no login waits for this answer')
    const { provider, scopes } = attempt
    const outcome = await complete(attempt, parameters)
    const options = outcome.status === 'authorized' ? '' : attempt.typedClient
    const command = `doorward oauth login ${provider.name}${options}`
    return resultPage(provider.title, command, outcome, scopes)
  }

  const paste = async (loginId: string, text: string): Promise<Login> => {
    const attempt = pending.waitingAttempt(loginId)
    if (attempt.kind === 'device')
      throw new DoorwardError(
        'callback-invalid',
        'this login waits for its code to be entered at the provider, not for an address',
        { hint: 'open the page that the login named and enter the code there' },
      )
    const parameters = readPasted(text, attempt.redirectUri)
    if (pending.findByState(readState(parameters)) !== attempt)
      throw new DoorwardError(
        'callback-invalid',
        'the pasted address is not the answer to this login',
      )
    const outcome = await complete(attempt, parameters)
    if (outcome.status !== 'authorized') throw outcome.error
    return pending.view(loginId)
  }

  const onEnd = ({ loginId, provider }: Attempt, outcome: Outcome): void => {
    leases.get(loginId)?.release()
    leases.delete(loginId)
    holds.get(loginId)?.()
    holds.delete(loginId)
    const what = { provider: provider.name }
    if (outcome.status === 'authorized') {
      log.info(what, 'logged in')
      const detail = loginDetail(outcome)
      return announce({ ...what, what: 'login', state: 'done', ...(detail && { detail }) })
    }
    const { code, message } = outcome.error
    log.warn({ ...what, code }, `login ${outcome.status}`)
    // Who cancels knows it.
    if (outcome.status !== 'cancelled')
      announce({ ...what, what: 'login-failed', state: 'failed', code, detail: message })
  }

  // While somebody logs in, nothing is revoked there that could end the new login.
  const onBegin = ({ loginId, provider }: Attempt): void =>
    void holds.set(loginId, revocations.hold(provider.name))

  const pending = createPendingLogins(onBegin, onEnd)
  const saveGrant = createSaveGrant(parts, (attempt) => pending.beginSaving(attempt))
  const devices = createDeviceLogins({
    pending,
    saveGrant,
    refuseWhenStopping,
    stopping: closing.signal,
    loginTimeoutMs: () => gateway.oauth.login_timeout,
    toldError,
    wait,
  })
  const listener = createCallbackListener(
    createAnswerCallback({
      listener: () => listener,
      render: loadCallbackPage(),
      finish: finishInBrowser,
    }),
  )
  return {
    start,
    paste,
    view: (loginId) => pending.view(loginId),
    untilEnd: (loginId, timeoutMs, signal) => pending.untilEnd(loginId, timeoutMs, signal),
    cancel: (loginId) => pending.cancel(loginId),
    takeNoMore: () => {
      takesMore = false
    },
    close: async (why) => {
      takesMore = false
      closing.abort()
      pending.close(why)
      await Promise.all([unfinished.settled(exchangeLimitMs), devices.close()])
      breakingOff.abort()
      await unfinished.settled(saveLimitMs)
      listener.close()
    },
  }
}

/** How long a stop waits for codes that are being exchanged, and then for files that are being written. */
const exchangeLimitMs = 5000
const saveLimitMs = 2000

const cancelled: Outcome = {
  status: 'cancelled',
  error: new DoorwardError('login-cancelled', 'the login was cancelled'),
}

const loginDetail = ({ account, replaced }: Authorized): string | undefined => {
  const parts = [
    ...(account ? [`logged in as ${account.name}`] : []),
    ...(replaced ? [`this replaces the login of ${replaced.name}`] : []),
  ]
  return parts.length > 0 ? parts.join('; ') : undefined
}

type ScopesToAsk = {
  readonly scopes: readonly string[]
  /** True where somebody chose them for this login or the one before, in place of the provider's own. */
  readonly areScopesChosen: boolean
}

type Asking = {
  /** Of the request. */
  readonly chosen: readonly string[] | undefined
  readonly provider: { readonly scopes: readonly string[] }
  readonly client: { readonly clientId: string }
  readonly before: TokenRecord | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

/**
 * What a login asks for: what it was told to; else what was chosen for a login of the same client that is
 * over, since a new one is to bring back what that one could; else what the provider has.
 */
const scopesToAsk = ({ chosen, provider, client, before, now }: Asking): ScopesToAsk => {
  if (chosen) return { scopes: chosen, areScopesChosen: true }
  const again =
    before?.scopesChosen && before.clientId === client.clientId && isLoginOver(before, now)
      ? before.requestedScopes
      : undefined
  return { scopes: again ?? provider.scopes, areScopesChosen: again !== undefined }
}
