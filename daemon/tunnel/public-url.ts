import { readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setServer } from '../../shared/set-server.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { type Home, systemReason } from '../../shared/home/home.ts'
import { withConfigLock } from '../../shared/home/lock.ts'

/**
 * Writes `server.public_url`; the rest of `gateway.yaml` keeps every byte. Throws `config-invalid`,
 * `home-unusable`.
 */
export const writePublicUrl = async (home: Home, url: string): Promise<void> =>
  withConfigLock(home, async () => {
    try {
      // The owner may have made the name a link.
      const path = await realpath(join(home.config, 'gateway.yaml'))
      const text = await readFile(path, 'utf8')
      const changed = setServer(text, { public_url: url })
      if (changed !== text) await writeFileAtomic(path, changed, (await stat(path)).mode & 0o777)
    } catch (error) {
      if (error instanceof DoorwardError) throw error
      throw new DoorwardError(
        'home-unusable',
        `cannot write gateway.yaml: ${systemReason(error)}`,
        {
          cause: error,
          hint: `make it writable for you, or write public_url: ${url} below server`,
        },
      )
    }
  })
