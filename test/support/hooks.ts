import { sep } from 'node:path'
import type { Context } from 'mocha'
import { killDaemons } from './daemon.ts'
import { killLanguageServers } from './language-server.ts'
import { removeTemporaryFolders } from './temporary.ts'

/**
 * Leaves nothing behind, whatever a test did. A test with a desktop is tried once more: about one start in
 * some hundred of a virtual display and its tray program shows no icon, and the cause is not known yet.
 */
export const mochaHooks = {
  beforeEach(this: Context): void {
    const test = this.currentTest
    if (test?.file?.includes(`${sep}desktop${sep}`)) test.retries(1)
  },
  async afterAll(): Promise<void> {
    killDaemons()
    killLanguageServers()
    await removeTemporaryFolders()
  },
}
