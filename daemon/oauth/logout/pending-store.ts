import { nameOf } from '../../../shared/errors.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import {
  listPending,
  newPendingName,
  providerOfName,
  readPending,
  removePending,
  writePending,
} from './pending-file.ts'
import type { PendingRevocation } from './pending-revocation.ts'

/** The pending revocations on the disk, and those that could not be written there. */
export type PendingStore = {
  /** Keeps a new one and returns its name. On the disk where that can be, else in memory: that is logged. */
  readonly add: (pending: PendingRevocation) => Promise<string>
  readonly save: (name: string, pending: PendingRevocation) => Promise<void>
  /** Undefined when there is none of this name any more. Throws for a file that is not to be used. */
  readonly read: (name: string) => Promise<PendingRevocation | undefined>
  readonly remove: (name: string) => Promise<void>
  /** All names, or those of one provider. Throws `token-file-insecure` for the folder. */
  readonly names: (provider?: string) => Promise<string[]>
  /** True while this one will survive the daemon. */
  readonly isOnDisk: (name: string) => boolean
}

/** Makes the store of one home. */
export const createPendingStore = ({
  home,
  log,
}: Pick<OAuthDependencies, 'home' | 'log'>): PendingStore => {
  const inMemory = new Map<string, PendingRevocation>()

  const save = async (name: string, pending: PendingRevocation): Promise<void> => {
    try {
      await writePending(home, name, pending)
      inMemory.delete(name)
    } catch (error) {
      inMemory.set(name, pending)
      const fields = { provider: pending.provider, error: nameOf(error) }
      log.error(fields, 'a pending revocation is kept in memory alone')
    }
  }
  return {
    save,
    add: async (pending) => {
      const name = newPendingName(pending.provider)
      await save(name, pending)
      return name
    },
    read: async (name) => inMemory.get(name) ?? readPending(home, name),
    remove: async (name) => {
      inMemory.delete(name)
      await removePending(home, name)
    },
    names: async (provider) => {
      // What is in memory is tried all the same when the folder cannot be used.
      const onDisk = await listPending(home).catch((error: unknown) => {
        if (inMemory.size === 0) throw error
        return []
      })
      const all = [...new Set([...onDisk, ...inMemory.keys()])]
      return all.filter((name) => provider === undefined || providerOfName(name) === provider)
    },
    isOnDisk: (name) => !inMemory.has(name),
  }
}
