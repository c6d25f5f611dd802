import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import type { StatusProblem } from '../../../shared/api.ts'
import { systemCode } from '../../../shared/errors.ts'
import { type Home, systemReason } from '../../../shared/home/home.ts'

/** Less than a few token files need. */
const leastBytes = 64 * 1024

/**
 * What keeps new tokens from being stored: a folder that is gone or read-only, a disk that is full. Without
 * it nobody would know until a login is lost. Writes nothing.
 */
export const storageProblems = async (home: Home): Promise<StatusProblem[]> => {
  const problem = (detail: string, hint: string) => [{ code: 'home-unusable', detail, hint }]
  try {
    await access(home.tokens, constants.W_OK)
    const { bavail, bsize } = await statfs(home.tokens)
    if (bavail * bsize >= leastBytes) return []
    return problem(
      `the disk of ${home.root} is full: tokens cannot be renewed and the log is not written`,
      'make room on that disk: what was not stored is tried again by itself',
    )
  } catch (error) {
    // A system without statfs, or that does not answer just now, says nothing of the folder.
    if (!['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS'].includes(systemCode(error) ?? ''))
      return []
    if (systemCode(error) === 'ENOENT')
      return problem(
        `the folder ${home.tokens} is gone: no token can be given out or renewed`,
        'put it back, or make a new home: doorward daemon restart',
      )
    return problem(
      `cannot write to ${home.tokens} (${systemReason(error)}): tokens cannot be renewed`,
      'make it writable for you: what was not stored is tried again by itself',
    )
  }
}
