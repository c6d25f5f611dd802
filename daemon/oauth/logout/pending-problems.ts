import type { StatusProblem } from '../../../shared/api.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { type PendingRevocation, giveUpDate } from './pending-revocation.ts'
import type { PendingStore } from './pending-store.ts'
import { byHand } from './revoke-grant.ts'

/** What `/status` says: one line for each provider with revocations that wait, one for each unusable file. */
export const pendingProblems = async (
  store: PendingStore,
  gateway: Gateway,
): Promise<StatusProblem[]> => {
  const problems: StatusProblem[] = []
  const waiting = new Map<string, PendingRevocation[]>()
  const note = (error: unknown): void => {
    if (!(error instanceof DoorwardError)) throw error
    problems.push({ code: error.code, detail: error.message, hint: error.hint ?? '' })
  }
  try {
    for (const name of await store.names()) {
      const pending = await store.read(name).catch(note)
      if (!pending) continue
      waiting.set(pending.provider, [...(waiting.get(pending.provider) ?? []), pending])
    }
  } catch (error) {
    note(error)
  }
  return [...problems, ...[...waiting].map(([name, all]) => waitingProblem(name, all, gateway))]
}

const waitingProblem = (
  provider: string,
  all: readonly PendingRevocation[],
  gateway: Gateway,
): StatusProblem => {
  const newest = Math.max(...all.map(({ since }) => Date.parse(since)))
  const failure = all.find(({ lastFailure }) => lastFailure !== undefined)?.lastFailure
  const count = all.length === 1 ? 'an earlier login' : `${all.length} earlier logins`
  return {
    code: 'revocation-pending',
    detail: `the tokens of ${count} at ${provider} are not revoked yet${failure === undefined ? '' : `: ${failure}`}`,
    hint: `nothing to do: it is tried again until ${giveUpDate(newest)}; by hand you can do it ${byHand(provider, gateway)}`,
  }
}
