import { killDaemons } from './daemon.ts'
import { killLanguageServers } from './language-server.ts'
import { removeTemporaryFolders } from './temporary.ts'

/** Leaves nothing behind, whatever a test did. */
export const mochaHooks = {
  async afterAll(): Promise<void> {
    killDaemons()
    killLanguageServers()
    await removeTemporaryFolders()
  },
}
