import { lstat, mkdir, readFile, readlink, rmdir, symlink, unlink } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, systemReason } from '../home.ts'
import { writeWhole } from '../write-whole.ts'
import type { LoginItem } from './items.ts'
import { type Marker, readMarker } from './marker.ts'

export type Found =
  | { readonly is: 'missing' }
  | { readonly is: 'foreign'; readonly why: string }
  | { readonly is: 'ours'; readonly text: string; readonly marker: Marker }

/** What lies at the path of an item. Throws `login-item-failed` when it cannot be read. */
export const inspectItem = async ({ path, encoding }: LoginItem, home: Home): Promise<Found> => {
  if (!isAbsolute(path)) return { is: 'missing' }
  try {
    if ((await lstat(path)).isSymbolicLink()) return { is: 'foreign', why: 'is a symbolic link' }
    const text = await readFile(path, encoding)
    const marker = readMarker(text)
    if (!marker) return { is: 'foreign', why: 'was not written by doorward' }
    if (marker.home !== home.root)
      return { is: 'foreign', why: `is that of another home, ${marker.home}` }
    return { is: 'ours', text, marker }
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return { is: 'missing' }
    throw failed('read', path, error)
  }
}

/**
 * Writes an item and its link where they differ; gives the paths that changed. Throws
 * `login-item-foreign` for a file of that name that is not ours, `login-item-failed`.
 */
export const writeItem = async (item: LoginItem, home: Home): Promise<string[]> => {
  // By the home folder of a user who has none.
  if (!isAbsolute(item.path))
    throw new DoorwardError('login-item-failed', 'no home folder to write to: HOME is not set', {
      hint: 'set HOME',
    })
  const found = await inspectItem(item, home)
  if (found.is === 'foreign')
    throw new DoorwardError('login-item-foreign', `${item.path} ${found.why}: it was left alone`, {
      hint: 'move it away, then run this again',
    })
  const written: string[] = []
  try {
    if (found.is === 'missing' || found.text !== item.text) {
      await mkdir(dirname(item.path), { recursive: true, mode: 0o700 })
      await writeWhole(item.path, Buffer.from(item.text, item.encoding), 0o644)
      written.push(item.path)
    }
    if (item.link && !(await isLinked(item))) {
      await mkdir(dirname(item.link), { recursive: true, mode: 0o700 })
      await unlink(item.link).catch(() => undefined)
      await symlink(relative(dirname(item.link), item.path), item.link)
      written.push(item.link)
    }
  } catch (error) {
    throw failed('write', item.path, error)
  }
  return written
}

/** True when the link that makes an item take effect is there. */
export const isLinked = async ({ path, link }: LoginItem): Promise<boolean> => {
  if (!link) return true
  try {
    return resolve(dirname(link), await readlink(link)) === path
  } catch {
    return false
  }
}

/** Removes an item of ours and its link; gives what was removed, and leaves what is not ours. */
export const removeItem = async (item: LoginItem, home: Home): Promise<string[]> => {
  const found = await inspectItem(item, home)
  if (found.is === 'foreign') return []
  const removed: string[] = []
  try {
    if (item.link && (await isLinked(item))) {
      await unlink(item.link)
      removed.push(item.link)
      await rmdir(dirname(item.link)).catch(() => undefined)
    }
    if (found.is === 'ours') {
      await unlink(item.path)
      removed.push(item.path)
    }
  } catch (error) {
    throw failed('remove', item.path, error)
  }
  return removed
}

const failed = (what: string, path: string, error: unknown): DoorwardError =>
  new DoorwardError('login-item-failed', `cannot ${what} ${path}: ${systemReason(error)}`, {
    cause: error,
    hint: 'make its folder writable for you',
  })
