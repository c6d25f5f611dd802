import { fileURLToPath } from 'node:url'
import { packageFolder } from '../shared/version.ts'
import type { IconName } from './icon-of.ts'

/**
 * The picture of a state as the system wants it: an .ico on Windows, on macOS a template image that
 * the system colours itself, else a PNG of twice the usual size.
 */
export const iconFile = (name: IconName, platform: NodeJS.Platform = process.platform): string => {
  const files: Partial<Record<NodeJS.Platform, string>> = {
    win32: `${name}.ico`,
    darwin: `${name}Template@2x.png`,
  }
  return pathOf(files[platform] ?? `${name}@2x.png`)
}

/** The picture of a state as a notification shows it, on every system. */
export const noteIconFile = (name: IconName): string => pathOf(`${name}@2x.png`)

const pathOf = (file: string): string =>
  fileURLToPath(new URL(`assets/icons/${file}`, packageFolder))
