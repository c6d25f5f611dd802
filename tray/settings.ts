import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { type Home, systemReason } from '../shared/home/home.ts'
import { writeFileAtomic } from '../shared/home/files.ts'

/** What a person has chosen in the menu; everything else belongs to the daemon. */
export type Settings = {
  /** Off: only what is meant for `notify:desktop` is shown, and the answer to a click. */
  readonly notifications: boolean
}

const defaults: Settings = { notifications: true }

/** The file: `tray.json` in the home, 0600. */
export const settingsFile = (home: Home): string => join(home.root, 'tray.json')

/** The settings of a home. A file that cannot be read counts as none, and `onDamaged` hears so. */
export const readSettings = async (
  home: Home,
  onDamaged: (reason: string) => void,
): Promise<Settings> => {
  const path = settingsFile(home)
  try {
    return settingsIn(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return defaults
    const reason = systemCode(error) === undefined ? 'it is damaged' : systemReason(error)
    onDamaged(`the settings in ${path} cannot be read, the defaults are used: ${reason}`)
    return defaults
  }
}

/** By hand: a library for this would hold up the icon. What a later version has added is passed over. */
const settingsIn = (value: unknown): Settings => {
  const { notifications } = Object(value) as { notifications?: unknown }
  if (typeof notifications !== 'boolean') throw new TypeError()
  return { notifications }
}

/** Keeps settings, whole or not at all. Throws `home-unusable`. */
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
