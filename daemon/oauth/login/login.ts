import type { Login, StartLogin, StartedLogin } from '../../../shared/api.ts'
import { DoorwardError, nameOf } from '../../../shared/errors.ts'
import { dialectOf } from '../dialect/dialects.ts'
import { findAccount } from './account.ts'
import { createAnswerCallback } from './answer-callback.ts'
import { authorizeUrl } from './authorize-url.ts'
import { type Lease, createCallbackListener } from './callback-listener.ts'
import { loadCallbackPage } from './callback-page.ts'
import { findClient, rememberClient } from '../provider/client-file.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import type { Discover } from '../provider/discovery.ts'
import { exchangeCode } from './exchange.ts'
import type { OneAtATime } from '../one-at-a-time.ts'
import { type Attempt, type Outcome, createPendingLogins, randomText } from './pending.ts'
import { refusalError } from '../provider/provider-error.ts'
import { findProvider } from '../provider/providers.ts'
import { readCallback, readPasted, readState } from './read-callback.ts'
import { resultPage } from './result-page.ts'
import { writeToken } from '../token/token-file.ts'
import { tokenRecordOf } from '../token/token-record.ts'

export type Logins = {
  readonly start: (request: StartLogin) => Promise<StartedLogin>
  readonly view: (loginId: string) => Login
  readonly untilEnd: (loginId: string, timeoutMs: number, signal: AbortSignal) => Promise<void>
  readonly paste: (loginId: string, url: string) => Promise<Login>
  readonly cancel: (loginId: string) => void
  /** Cancels what waits; tokens that are being written are not lost. */
  readonly close: () => Promise<void>
}

/*
 * One login. start: provider, client, endpoints, state and verifier, then the callback listener, and
 * only then the authorization URL. The person approves, and the browser comes to the callback: state
 * first, then issuer, error and code. The code is exchanged, the tokens are written to the disk, and
 * only then the page says success. What does not fit is refused, and the login keeps waiting.
 */
export const createLogins = (
  { home, gateway, env, log, announce }: OAuthDependencies,
  discover: Discover,
  inTurn: OneAtATime,
  changed: (provider: string) => void,
): Logins => {
  const closing = new AbortController()
  const leases = new Map<string, Lease>()
  const savings = new Set<Promise<void>>()

  const start = async (request: StartLogin): Promise<StartedLogin> => {
    const provider = findProvider(request.provider, gateway)
    const client = await findClient(home, provider, env, request)
    const endpoints = await discover(provider, closing.signal)
    const lease = await listener.open(
      provider.redirectHost,
      provider.callbackPort ?? gateway.oauth.callback_port,
    )
    if (closing.signal.aborted) {
      lease.release()
      throw new DoorwardError('stopping', 'the daemon is stopping')
    }
    const now = Date.now()
    const attempt: Attempt = {
      loginId: randomText(),
      provider,
      client,
      endpoints,
      scopes: request.scopes ?? provider.scopes,
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
  const complete = async (attempt: Attempt, parameters: URLSearchParams): Promise<Outcome> => {
    const { server, isIssuerKnown } = attempt.endpoints
    const answer = readCallback(parameters, {
      issuer: isIssuerKnown ? server.issuer : undefined,
      issuerRequired: server.authorization_response_iss_parameter_supported === true,
    })
    pending.consume(attempt)
    let outcome: Outcome
    try {
      if (answer.kind === 'error') throw refusalError(attempt.provider, answer.error)
      outcome = await exchangeAndSave(attempt, parameters)
    } catch (error) {
      outcome = { status: 'failed', error: knownError(error) }
    }
    return pending.settle(attempt, outcome)
  }

  const knownError = (error: unknown): DoorwardError => {
    if (error instanceof DoorwardError) return error
    log.error({ error: nameOf(error) }, 'login failed')
    return new DoorwardError('internal', 'something went wrong inside the daemon', {
      hint: 'doorward daemon logs',
    })
  }

  const exchangeAndSave = async (
    attempt: Attempt,
    parameters: URLSearchParams,
  ): Promise<Outcome> => {
    const { provider, client, endpoints, control } = attempt
    const signal = AbortSignal.any([control.signal, closing.signal])
    const grant = await exchangeCode({ ...attempt, parameters }, signal)
    const obtainedAt = Date.now()
    const account = await findAccount(
      grant,
      endpoints,
      { identify: dialectOf(provider).identify, apiUrl: provider.apiUrl },
      signal,
    )
    const saving = inTurn(provider.name, async () => {
      pending.beginSaving(attempt)
      await rememberClient(home, provider.name, client)
      await writeToken(home, tokenRecordOf(attempt, grant, account, obtainedAt))
      changed(provider.name)
    })
    savings.add(saving)
    await saving.finally(() => savings.delete(saving))
    return { status: 'authorized', account }
  }

  const finishInBrowser = async (parameters: URLSearchParams, host: string) => {
    const attempt = pending.findByState(readState(parameters))
    if (!attempt || new URL(attempt.redirectUri).host !== host)
      throw new DoorwardError('callback-invalid', 'no login waits for this answer')
    const { title, name } = attempt.provider
    return resultPage(title, `doorward oauth login ${name}`, await complete(attempt, parameters))
  }

  const paste = async (loginId: string, text: string): Promise<Login> => {
    const attempt = pending.waitingAttempt(loginId)
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
    const what = { provider: provider.name }
    if (outcome.status === 'authorized') {
      log.info(what, 'logged in')
      const detail = outcome.account ? { detail: `logged in as ${outcome.account.name}` } : {}
      return announce({ ...what, what: 'login', state: 'done', ...detail })
    }
    const { code, message } = outcome.error
    log.warn({ ...what, code }, `login ${outcome.status}`)
    // Who cancels knows it.
    if (outcome.status !== 'cancelled')
      announce({ ...what, what: 'login-failed', state: 'failed', code, detail: message })
  }

  const pending = createPendingLogins(onEnd)
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
    close: async () => {
      closing.abort()
      pending.close()
      await Promise.allSettled(savings)
      listener.close()
    },
  }
}
