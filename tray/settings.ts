import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { type Home, systemReason } from '../shared/home/home.ts'
import { writeFileAtomic } from '../shared/home/files.ts'

/** What the user has set in the menu; everything else belongs to the daemon. */
export type Settings = {
  /** While off, only events for `notify:desktop` and answers to clicks are shown. */
  readonly notifications: boolean
}

const defaults: Settings = { notifications: true }

export const settingsFile = (home: Home): string => join(home.root, 'tray.json')

/** The settings of a home; the defaults, after a call of `onDamaged`, when the file cannot be read. */
export const readSettings = async (
  home: Home,
  onDamaged: (reason: string) => void,
): Promise<Settings> => {
  const path = settingsFile(home)
  try {
    return parseSettings(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return defaults
    const reason = systemCode(error) === undefined ? 'it is damaged' : systemReason(error)
    onDamaged(`using default settings: cannot read ${path}: ${reason}`)
    return defaults
  }
}

/** Parsed by hand, since loading a library would delay the icon. Ignores unknown fields. */
const parseSettings = (value: unknown): Settings => {
  const { notifications } = Object(value) as { notifications?: unknown }
  if (typeof notifications !== 'boolean') throw new TypeError()
  return { notifications }
}

/** Writes the settings atomically. Throws `home-unusable`. */
export const writeSettings = async (home: Home, settings: Settings): Promise<void> => {
  const path = settingsFile(home)
  try {
    await writeFileAtomic(path, `${JSON.stringify(settings, null, 2)}\n`)
  } catch (error) {
    throw new DoorwardError('home-unusable', `cannot write ${path}: ${systemReason(error)}`, {
      cause: error,
      hint: 'make the folder writable for you and see that the disk is not full',
    })
  }
}
