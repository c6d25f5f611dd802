import { readFile } from 'node:fs/promises'
import { DoorwardError } from '../errors.ts'
import type { Home } from '../home/home.ts'
import { withConfigLock } from '../home/lock.ts'
import { openConfig } from './open-config.ts'

const maxTries = 5

/**
 * Changes webhooks.yaml as it is now, whole or not at all. A file that someone saves meanwhile is read again and
 * changed as they left it. Throws `config-invalid` while the configuration is broken, and what `change` throws.
 */
export const changeWebhooks = async (
  home: Home,
  change: (text: string) => string,
): Promise<void> => {
  await withConfigLock(home, async () => {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const opened = await openConfig(home)
      const { text, path } = opened.file('webhooks')
      const changed = change(text)
      if (changed === text) return
      opened.check('webhooks', changed)
      if ((await readFile(path, 'utf8').catch(() => undefined)) !== text) continue
      await opened.write('webhooks', changed)
      return
    }
    throw new DoorwardError('unavailable', 'webhooks.yaml is being written all the time', {
      hint: 'try again once the other program has finished',
    })
  })
}
