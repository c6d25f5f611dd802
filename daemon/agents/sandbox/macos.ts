import { realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Room } from './visible-files.ts'

/*
 * A sandbox by sandbox-exec of macOS: users' folders, disks and temporary files are hidden, and only the room
 * of the run is open in them. Nothing can be put in another place, so a program has its own folder with its
 * settings and logins, not a part of it.
 */

const hiddenFolders = [
  '/Users',
  '/Volumes',
  '/private/tmp',
  '/private/var/folders',
  '/private/etc/ssh',
]

/** The keychain, in which Claude Code keeps its login. */
const keychains = (): string => join(homedir(), 'Library', 'Keychains')

/** The arguments of sandbox-exec for a program in this room. */
export const buildSandboxExec = (room: Room): string[] => [
  room.sandbox,
  '-p',
  buildProfile(room),
  ...room.argv,
]

/** Rules compare real paths: `/var` and `/tmp` are links to `/private`. */
const withRealPath = (path: string): string[] => {
  try {
    return [path, realpathSync(path)]
  } catch {
    return [path]
  }
}

/** In the language of profiles (SBPL) the last rule that fits decides. */
export const buildProfile = ({
  network,
  userHome,
  doorwardHome,
  empty,
  links,
  read,
  hidden,
  write,
}: Room): string => {
  const all = (rule: string, paths: Iterable<string>) => {
    const places = [...new Set([...paths].flatMap(withRealPath))].map(
      (path) => `(subpath ${JSON.stringify(path)})`,
    )
    return places.length === 0 ? [] : [`(${rule} ${places.join(' ')})`]
  }
  const readable = [...links.keys(), ...read]
  const writable = [...empty, ...write.keys(), ...write.values()]
  return [
    '(version 1)',
    '(allow default)',
    '(deny file-write*)',
    ...all('deny file-read*', [...hiddenFolders, userHome, doorwardHome]),
    // Programs look at each folder above their own.
    '(allow file-read-metadata)',
    ...all('allow file-read*', [...readable, ...writable, keychains()]),
    ...all('allow file-write*', writable),
    ...all('deny file*', hidden),
    '(allow file-write* (subpath "/dev"))',
    '(deny network*)',
    // The proxy of the run resolves names.
    ...(network.ports.length === 0
      ? []
      : ['(allow network-bind network-inbound (local ip "localhost:*"))']),
    ...network.ports.map((port) => `(allow network-outbound (remote ip "localhost:${port}"))`),
    '(deny appleevent-send)',
  ].join('\n')
}
