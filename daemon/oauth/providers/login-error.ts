import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'

/** Options of `doorward oauth login`. */
export type LoginOptions = {
  readonly clientId?: string
  /** The command asks for the client secret. */
  readonly secret?: true
  readonly device?: true
}

/** How to log in again. */
type NextLogin = {
  readonly provider: string
  /** A step before that, without a full stop. */
  readonly first?: string | undefined
  readonly options?: LoginOptions
}

export const toLoginCommand = (
  provider: string,
  { clientId, secret, device }: LoginOptions = {},
): string => {
  const id = clientId === undefined ? '' : ` --client-id ${clientId}`
  return `doorward oauth login ${provider}${id}${secret ? ' --client-secret-stdin' : ''}${device ? ' --device' : ''}`
}

/** An error after which a person logs in again. */
export class LoginError extends DoorwardError {
  readonly next: NextLogin

  constructor(code: ErrorCode, message: string, next: NextLogin) {
    const { provider, first, options } = next
    const command = toLoginCommand(provider, options)
    super(code, message, {
      hint: first === undefined ? command : `${first}, then: ${command}`,
      about: { provider },
    })
    this.next = next
  }

  /** The same error of a login that needs these options too. */
  withOptions(options: LoginOptions): LoginError {
    const { code, message, next } = this
    return new LoginError(code, message, { ...next, options: { ...options, ...next.options } })
  }
}
