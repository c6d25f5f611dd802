import type { DoorwardError } from '../../../shared/errors.ts'
import type { OAuthEvent } from '../dependencies.ts'

/** A renewal that is worth a word although it went well. */
export const renewedEvent = (provider: string, detail: string): OAuthEvent => ({
  what: 'refresh',
  provider,
  state: 'done',
  detail,
})

/** A renewal that failed, or found that the login is over. */
export const failedEvent = (
  what: 'needs-login' | 'refresh-failed',
  provider: string,
  { code, message }: DoorwardError,
): OAuthEvent => ({ what, provider, state: 'failed', code, detail: message })
