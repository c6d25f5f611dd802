import { once } from 'node:events'
import type {
  Login,
  StartedDeviceLogin,
  StartedLogin,
  StartLogin,
} from '../../../shared/api/api.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { trackPending } from '../../util/concurrency.ts'
import { wait as waitByClock } from '../dependencies.ts'
import { findClient } from '../providers/client-store.ts'
import { refusalError, LoginError, toLoginCommand } from '../providers/errors.ts'
import { findProvider } from '../providers/providers.ts'
import type { OAuthServices } from '../services.ts'
import { type Grant, isLoginOver, type TokenRecord } from '../tokens/token-record.ts'
import {
  type Authorization,
  exchangeCode,
  readCallback,
  readPasted,
  readState,
  requestAuthorization,
} from './authorization-code.ts'
import { type Page, resultPage } from './callback-page.ts'
import type { CallbackServer, Lease } from './callback-server.ts'
import { DeviceLogins } from './device-flow.ts'
import {
  type Attempt,
  type Authorized,
  type CodeAttempt,
  type LoginRequest,
  type Outcome,
  PendingLogins,
  randomText,
  toClientOptions,
} from './pending-logins.ts'
import { readStoredLogin, saveGrant } from './save-grant.ts'

/** How long a stop waits for codes that are being exchanged, and then for files that are being written. */
const exchangeLimitMs = 5000
const saveLimitMs = 2000

const usualLoginTimeoutMs = 10 * 60_000

/**
 * Logins. Start: provider, client, endpoints, state and verifier, then the callback listener, and only then
 * the authorization URL. The user approves, and the browser opens the callback: state first, then issuer,
 * error and code. The code is exchanged, the tokens are written to the disk, and only then the page says
 * success. Any other request is refused, and the login stays pending. A login by device code gets its grant
 * in another way (device-flow.ts) and ends as this one.
 */
export class Logins {
  readonly #services: OAuthServices
  readonly #pending: PendingLogins
  readonly #devices: DeviceLogins
  readonly #callback: CallbackServer
  readonly #leases = new Map<string, Lease>()
  readonly #exchanges = trackPending()
  readonly #closing = new AbortController()
  readonly #abortingExchanges = new AbortController()
  #acceptsNew = true

  /** `callback` answers by `finishInBrowser`. */
  constructor(services: OAuthServices, callback: CallbackServer) {
    this.#services = services
    this.#callback = callback
    const { wait = waitByClock, loginTimeoutMs = usualLoginTimeoutMs } = services.dependencies
    const { revocations } = services
    this.#pending = new PendingLogins({
      // A revocation could end the new login.
      onBegin: ({ provider, control }) => revocations.pauseFor(provider.name, control.signal),
      onEnd: (attempt, outcome) => this.#onEnd(attempt, outcome),
    })
    this.#devices = new DeviceLogins({
      pending: this.#pending,
      saveGrant: this.#save,
      refuseWhenStopping: () => this.#refuseWhenStopping(),
      stopping: this.#closing.signal,
      loginTimeoutMs,
      toKnownError: this.#toKnownError,
      wait,
    })
  }

  /**
   * Throws `stopping`, `provider-unknown`, `client-unknown`, `callback-port-in-use`, `keychain-unavailable` or an
   * error of the provider.
   */
  async start(request: StartLogin): Promise<StartedLogin | StartedDeviceLogin> {
    this.#refuseWhenStopping()
    const { dependencies, discover, tokens } = this.#services
    const { home, gateway, env, log } = dependencies
    const provider = findProvider(request.provider, gateway)
    await home.keychain?.prepare()
    const client = await findClient(home, provider, env, request, gateway.oauth.callback_port)
    const known = await findClient(home, provider, env).catch(() => undefined)
    const before = tokens.unsaved(provider.name) ?? (await readStoredLogin(home, provider.name))
    const { scopes, areScopesChosen } = chooseScopes({
      requested: request.scopes,
      provider,
      client,
      before,
      now: Date.now(),
    })
    const clientOptions = toClientOptions(client, known)
    const endpoints = await discover(provider, this.#closing.signal)
    const login = { provider, client, clientOptions, areScopesChosen, endpoints }
    const start = async () =>
      request.device ? this.#devices.start(login, scopes) : this.#startInBrowser(login, scopes)
    const started = await start().catch((error: unknown) => {
      throw error instanceof LoginError ? error.withOptions(clientOptions) : error
    })
    if (!request.device) return started
    log.info({ provider: provider.name }, 'login by device code started')
    return started
  }

  /** Finishes a login with a redirect URL that the user pasted. */
  async paste(loginId: string, text: string): Promise<Login> {
    const attempt = this.#pending.waitingAttempt(loginId)
    if (attempt.kind === 'device')
      throw new DoorwardError(
        'callback-invalid',
        'this login needs its code to be entered at the provider, not an address',
        { hint: 'open the page that the login named and enter the code there' },
      )
    const parameters = readPasted(text, attempt.redirectUri)
    if (this.#pending.findByState(readState(parameters)) !== attempt)
      throw new DoorwardError(
        'callback-invalid',
        'the pasted address is not the answer to this login',
      )
    const outcome = await this.#complete(attempt, parameters)
    if (outcome.status !== 'authorized') throw outcome.error
    return this.#pending.view(loginId)
  }

  view(loginId: string): Login {
    return this.#pending.view(loginId)
  }

  async waitForEnd(loginId: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    await this.#pending.waitForEnd(loginId, timeoutMs, signal)
  }

  cancel(loginId: string): void {
    this.#pending.cancel(loginId)
  }

  /** Refuses new logins, for a stop that would cut them off; pending ones continue. */
  refuseNew(): void {
    this.#acceptsNew = false
  }

  /** Cancels pending logins, within seconds; tokens that arrive late are revoked or kept for that. */
  async close(why: string): Promise<void> {
    this.#acceptsNew = false
    this.#closing.abort()
    this.#pending.close(why)
    await Promise.all([this.#exchanges.settled(exchangeLimitMs), this.#devices.close()])
    this.#abortingExchanges.abort()
    await this.#exchanges.settled(saveLimitMs)
  }

  #refuseWhenStopping(): void {
    if (this.#acceptsNew) return
    throw new DoorwardError('stopping', 'the daemon is stopping and accepts no new login', {
      hint: 'doorward daemon start waits until it has stopped and starts the next one: log in then',
    })
  }

  async #startInBrowser(login: LoginRequest, scopes: readonly string[]): Promise<StartedLogin> {
    const { gateway, log, loginTimeoutMs = usualLoginTimeoutMs } = this.#services.dependencies
    const { provider, endpoints } = login
    const port = gateway.oauth.callback_port
    const lease = await this.#callback.open(provider, port)
    const asked = {
      scopes,
      state: randomText(),
      codeVerifier: randomText(),
      ...(scopes.includes('openid') && { nonce: randomText() }),
      redirectUri: lease.redirectUri,
    }
    let page: Authorization
    try {
      this.#refuseWhenStopping()
      page = await requestAuthorization(login, asked, this.#closing.signal)
      this.#refuseWhenStopping()
    } catch (error) {
      lease.release()
      throw error
    }
    const now = Date.now()
    const { lifetimeSeconds = Number.POSITIVE_INFINITY } = page
    const attempt: CodeAttempt = {
      kind: 'code',
      loginId: randomText(),
      ...login,
      ...asked,
      ...(lifetimeSeconds * 1000 < loginTimeoutMs && { openBefore: now + lifetimeSeconds * 1000 }),
      expiresAt: now + loginTimeoutMs,
      control: new AbortController(),
    }
    const { openBefore } = attempt
    this.#leases.set(attempt.loginId, lease)
    this.#pending.add(attempt, now)
    log.info({ provider: provider.name }, 'login started')
    return {
      loginId: attempt.loginId,
      provider: provider.name,
      authorizationUrl: page.url,
      ...(openBefore !== undefined && { openBefore: new Date(openBefore).toISOString() }),
      redirectUri: attempt.redirectUri,
      scopes: [...attempt.scopes],
      expiresAt: new Date(attempt.expiresAt).toISOString(),
      ...(endpoints.server.device_authorization_endpoint !== undefined && { device: true }),
    }
  }

  /** Finishes the login that these parameters answer. Throws where there is none. */
  async finishInBrowser(parameters: URLSearchParams, address: string): Promise<Page> {
    const attempt = this.#pending.findByState(readState(parameters))
    // RFC 9700 section 4.4.2.2: a provider cannot send its login on to another one, where their paths differ.
    if (attempt?.redirectUri !== address)
      throw new DoorwardError('callback-invalid', 'no login is waiting for this answer')
    const { provider, scopes } = attempt
    const outcome = await this.#complete(attempt, parameters)
    const options = outcome.status === 'authorized' ? {} : attempt.clientOptions
    return resultPage(provider.title, toLoginCommand(provider.name, options), outcome, scopes)
  }

  /** Finishes the login of a valid answer; throws for another one, and the login stays pending. */
  async #complete(attempt: CodeAttempt, parameters: URLSearchParams): Promise<Outcome> {
    const { server, isIssuerKnown } = attempt.endpoints
    const answer = readCallback(parameters, {
      issuer: isIssuerKnown ? server.issuer : undefined,
      issuerRequired: server.authorization_response_iss_parameter_supported === true,
      authorizationEndpoint: server.authorization_endpoint,
    })
    this.#pending.consume(attempt)
    if (answer.kind === 'error')
      return this.#pending.settle(attempt, {
        status: 'failed',
        error: refusalError(attempt, answer),
      })
    // The exchange of a cancelled login still runs to its end: the tokens it brings must be revoked.
    const work = this.#exchanges.track(this.#exchangeAndSave(attempt, parameters))
    return Promise.race([work, this.#waitForCancel(attempt)])
  }

  async #waitForCancel(attempt: CodeAttempt): Promise<Outcome> {
    const { signal } = attempt.control
    if (!signal.aborted) await once(signal, 'abort')
    return this.#pending.settle(attempt, cancelled)
  }

  async #exchangeAndSave(attempt: CodeAttempt, parameters: URLSearchParams): Promise<Outcome> {
    const { signal } = this.#abortingExchanges
    try {
      const grant = await exchangeCode({ ...attempt, parameters }, signal)
      return this.#pending.settle(attempt, await this.#save(attempt, grant, signal))
    } catch (error) {
      return this.#pending.settle(attempt, {
        status: 'failed',
        error: this.#toKnownError(attempt, error),
      })
    }
  }

  readonly #save = (attempt: Attempt, grant: Grant, signal: AbortSignal): Promise<Outcome> =>
    saveGrant(this.#services, this.#pending, attempt, grant, signal)

  readonly #toKnownError = ({ provider }: Attempt, error: unknown): DoorwardError => {
    if (error instanceof DoorwardError) return error
    this.#services.dependencies.log.error({ error: errorName(error) }, 'login failed')
    const next = { provider: provider.name, first: 'see doorward daemon logs' }
    return new LoginError('internal', 'something went wrong inside the daemon', next)
  }

  #onEnd({ loginId, provider }: Attempt, outcome: Outcome): void {
    const { log, announce } = this.#services.dependencies
    this.#leases.get(loginId)?.release()
    this.#leases.delete(loginId)
    const fields = { provider: provider.name }
    if (outcome.status === 'authorized') {
      log.info(fields, 'logged in')
      const detail = describeLogin(outcome)
      return announce({ ...fields, what: 'login', state: 'done', ...(detail && { detail }) })
    }
    const { code, message } = outcome.error
    log.warn({ ...fields, code }, `login ${outcome.status}`)
    // A user who cancels a login needs no event about it.
    if (outcome.status !== 'cancelled')
      announce({ ...fields, what: 'login-failed', state: 'failed', code, detail: message })
  }
}

const cancelled: Outcome = {
  status: 'cancelled',
  error: new DoorwardError('login-cancelled', 'the login was cancelled'),
}

const describeLogin = ({ account, replaced, sameAccountAs }: Authorized): string | undefined => {
  const parts = [
    ...(account ? [`logged in as ${account.name}`] : []),
    ...(replaced ? [`this replaces the login of ${replaced.name}`] : []),
    ...(sameAccountAs === undefined ? [] : [`${sameAccountAs} is the same account`]),
  ]
  return parts.length > 0 ? parts.join('; ') : undefined
}

type ScopeChoice = {
  readonly scopes: readonly string[]
  /** True where someone chose them for this login or the one before, instead of the provider's default. */
  readonly areScopesChosen: boolean
}

type ScopeSources = {
  readonly requested: readonly string[] | undefined
  readonly provider: { readonly scopes: readonly string[] }
  readonly client: { readonly clientId: string }
  readonly before: TokenRecord | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

/**
 * The scopes of a login: those of the request; else those chosen for an earlier login of the same client
 * that is over, so that the new one can do what that one could; else the provider's default.
 */
const chooseScopes = ({ requested, provider, client, before, now }: ScopeSources): ScopeChoice => {
  if (requested) return { scopes: requested, areScopesChosen: true }
  const again =
    before?.scopesChosen && before.clientId === client.clientId && isLoginOver(before, now)
      ? before.requestedScopes
      : undefined
  return { scopes: again ?? provider.scopes, areScopesChosen: again !== undefined }
}
