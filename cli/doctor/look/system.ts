import { readFile } from 'node:fs/promises'
import { packageFolder, version } from '../../../shared/version.ts'
import type { SystemFacts } from '../judge/system.ts'

export const lookAtSystem = async (): Promise<SystemFacts> => {
  const text = await readFile(new URL('package.json', packageFolder), 'utf8')
  const { engines } = JSON.parse(text) as { engines?: { node?: string } }
  return {
    version,
    node: process.version,
    engines: engines?.node ?? '',
    platform: process.platform,
    arch: process.arch,
  }
}
