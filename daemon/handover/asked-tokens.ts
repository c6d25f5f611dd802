import type { AccessToken } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import { copyOfError, errorFrom, type FromNew, type FromOld } from '../restart/protocol.ts'

/** Tokens for what the old one still runs: only the new one renews any. */
export type AskedTokens = {
  readonly access: Tokens['access']
  readonly answered: (message: FromNew & { kind: 'token' }) => void
  /** The new one has gone. */
  readonly giveUp: () => void
}

export const createAskedTokens = (send: (message: FromOld) => void): AskedTokens => {
  const waiting = new Map<number, PromiseWithResolvers<AccessToken>>()
  let last = 0
  let isOver = false
  const gone = () =>
    new DoorwardError('stopping', 'the daemon that renews tokens has gone', {
      hint: 'doorward daemon start, then retry',
    })
  return {
    access: async (provider, request) => {
      if (isOver) throw gone()
      last += 1
      const answer = withResolvers<AccessToken>()
      waiting.set(last, answer)
      send({ kind: 'access', ask: last, provider, request })
      return answer.promise
    },
    answered: ({ ask, token, error }) => {
      const answer = waiting.get(ask)
      waiting.delete(ask)
      if (token) answer?.resolve(token)
      else if (error) answer?.reject(errorFrom(error))
    },
    giveUp: () => {
      isOver = true
      for (const { reject } of waiting.values()) reject(gone())
      waiting.clear()
    },
  }
}

/** The other side: asks for it here and answers. */
export const answerWithToken = async (
  { ask, provider, request }: FromOld & { kind: 'access' },
  access: Tokens['access'],
  send: (message: FromNew) => void,
): Promise<void> => {
  try {
    send({ kind: 'token', ask, token: await access(provider, request) })
  } catch (error) {
    send({ kind: 'token', ask, error: copyOfError(error) })
  }
}

type PromiseWithResolvers<Value> = {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
  readonly reject: (reason: unknown) => void
}

/** `Promise.withResolvers`, which Node 20 does not have. */
const withResolvers = <Value>(): PromiseWithResolvers<Value> => {
  let resolve: (value: Value) => void = () => undefined
  let reject: (reason: unknown) => void = () => undefined
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
