import { createHash } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'

/** A refresh token that was sent without an answer being saved: the provider may have used it up. */
export type SentRefresh = {
  readonly sentAt: string
  readonly refreshTokenSha256: string
}

const journalSchema = z.object({ sentAt: z.iso.datetime(), refreshTokenSha256: z.string() })

/**
 * Writes to the journal that this refresh token is about to be sent: its hash only. It is on the disk when
 * this returns. Throws `home-unusable`: then the token must not be sent.
 */
export const noteSent = async (
  home: Home,
  provider: string,
  refreshToken: string,
  sentAt: number,
): Promise<void> => {
  const entry: SentRefresh = {
    sentAt: new Date(sentAt).toISOString(),
    refreshTokenSha256: hashToken(refreshToken),
  }
  try {
    await writeFileAtomic(getPath(home, provider), `${JSON.stringify(entry)}\n`)
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `cannot write to ${home.tokens} (${systemCode(error)}), so the token of ${provider} is not renewed`,
      { cause: error, hint: 'make the folder writable for you and see that the disk is not full' },
    )
  }
}

/** When this refresh token was sent without an answer being saved, or undefined if it was not. */
export const sentBefore = async (
  home: Home,
  provider: string,
  refreshToken: string,
): Promise<string | undefined> => {
  try {
    const text = await readSecretFile(getPath(home, provider))
    if (text === undefined) return undefined
    const { sentAt, refreshTokenSha256 } = journalSchema.parse(JSON.parse(text))
    return refreshTokenSha256 === hashToken(refreshToken) ? sentAt : undefined
  } catch {
    // The journal only explains an error, so it may be unreadable.
    return undefined
  }
}

/** Removes the journal. If that fails it does no harm: its refresh token is no longer the stored one. */
export const forgetSent = async (home: Home, provider: string): Promise<void> => {
  await unlink(getPath(home, provider)).catch(() => undefined)
}

const getPath = (home: Home, provider: string): string =>
  join(home.tokens, `${provider}.json.refresh`)

const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')
