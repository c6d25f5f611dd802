import type { Account } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { dialectOf } from '../dialect/dialects.ts'
import type { PendingRevocations } from '../logout/pending-revocations.ts'
import { compareAccounts } from '../logout/same-account.ts'
import { endedTogether, endedTogetherCause } from '../logout/spare-login.ts'
import type { OneAtATime } from '../one-at-a-time.ts'
import { rememberClient } from '../provider/client-file.ts'
import type { Grant } from '../token/grant.ts'
import { writeToken } from '../token/token-file.ts'
import { type TokenRecord, missingIn, tokenRecordOf } from '../token/token-record.ts'
import type { Tokens } from '../token/tokens.ts'
import { findAccount } from './account.ts'
import type { Attempt, Outcome } from './pending.ts'
import { readReplaced, revocationOfReplaced } from './replaced-login.ts'

/**
 * The last stage of every login, whichever way the grant came. Throws `login-cancelled` when the login
 * ended before, `home-unusable`, or `provider-refused` when the provider did not let the new login live
 * beside the old one. Tokens that were not saved are revoked then, or kept for that.
 */
export type SaveGrant = (attempt: Attempt, grant: Grant, signal: AbortSignal) => Promise<Outcome>

export type SaveParts = {
  readonly dependencies: OAuthDependencies
  readonly inTurn: OneAtATime
  readonly revocations: PendingRevocations
  readonly broker: Pick<Tokens, 'changed' | 'unsaved'>
}

/*
 * Who has logged in; then, in turn with all that touches this provider's file: client and tokens to the
 * disk, and after that what they replace is revoked. The replaced tokens are put beside before they are
 * overwritten: a daemon that is killed here leaves none that nobody revokes.
 * `beginSaving` is asked before anything is written; it throws when the login has ended.
 */
export const createSaveGrant = (
  { dependencies, inTurn, revocations, broker }: SaveParts,
  beginSaving: (attempt: Attempt) => void,
): SaveGrant => {
  const { home } = dependencies

  const saveRecord = async (
    { provider, client }: Attempt,
    record: TokenRecord,
    replaced: TokenRecord | undefined,
  ): Promise<void> => {
    const old = await revocationOfReplaced(dependencies, provider, replaced, record, Date.now())
    await rememberClient(home, provider.name, client)
    const name = old && (await revocations.keep(old))
    try {
      await writeToken(home, record)
    } catch (error) {
      // The old login goes on, and so must its tokens.
      if (name !== undefined) await revocations.forget(name)
      throw error
    }
  }

  /** Revokes what was replaced. Throws when the new login did not survive that. */
  const revokeReplaced = async (record: TokenRecord, signal: AbortSignal): Promise<void> => {
    if (!(await revocations.tryBeside(record, signal))) return
    await writeToken(home, endedTogether(record, Date.now()))
    broker.changed(record.provider)
    throw new DoorwardError('provider-refused', `${endedTogetherCause}; log in once more`, {
      hint: `doorward oauth login ${record.provider}`,
    })
  }

  const revokeUnsaved = async (record: TokenRecord, { client }: Attempt): Promise<void> => {
    const { provider, accessToken, refreshToken, account, obtainedAt: since } = record
    await revocations.keep({
      version: 1,
      provider,
      tokens: { accessToken, refreshToken },
      client,
      account,
      extent: 'tokens',
      since,
      attempts: 0,
    })
  }

  return async (attempt, grant, signal) => {
    const { provider, endpoints } = attempt
    const obtainedAt = Date.now()
    const letGo = revocations.hold(provider.name)
    const { identify, impliedScopes } = dialectOf(provider)
    const account = await findAccount(
      grant,
      endpoints,
      { identify, apiUrl: provider.apiUrl },
      signal,
    )
    const record = tokenRecordOf(attempt, grant, account, obtainedAt)
    let isSaved = false
    try {
      return await inTurn(provider.name, async () => {
        beginSaving(attempt)
        const replaced =
          broker.unsaved(provider.name) ?? (await readReplaced(dependencies, provider.name))
        const saved = withWhatIsKnown(record, replaced)
        await saveRecord(attempt, saved, replaced)
        isSaved = true
        broker.changed(provider.name)
        await revokeReplaced(saved, signal)
        return {
          status: 'authorized',
          account,
          ...replacedBy(account, replaced?.account ?? null),
          ...missingIn(saved, impliedScopes),
        }
      })
    } catch (error) {
      if (!isSaved) await revokeUnsaved(record, attempt)
      throw error
    } finally {
      letGo()
    }
  }
}

/** That a provider ends logins together is learned once. */
const withWhatIsKnown = (record: TokenRecord, replaced: TokenRecord | undefined): TokenRecord =>
  replaced?.endsTogether && replaced.clientId === record.clientId
    ? { ...record, endsTogether: true }
    : record

const replacedBy = (account: Account | null, before: Account | null) =>
  before && compareAccounts(before, account) === 'other' ? { replaced: before } : {}
