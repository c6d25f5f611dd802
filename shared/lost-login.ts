import { DoorwardError } from './errors.ts'

/**
 * What is thrown where the wait for a login has failed. A daemon that has ended, or another that came after it,
 * knows nothing of that login: then it is said that it is lost, with `hint` as the way out.
 */
export const lostLogin = (error: unknown, provider: string, hint: string): unknown =>
  error instanceof DoorwardError && lost.has(error.code)
    ? // Not `stopping`, by which another daemon would be asked for a login that nobody began there.
      new DoorwardError(
        error.code === 'stopping' ? 'daemon-unreachable' : error.code,
        `the daemon ended while the login to ${provider} waited`,
        { cause: error, hint },
      )
    : error

const lost: ReadonlySet<string> = new Set(['daemon-unreachable', 'login-not-found', 'stopping'])
