// First of all: it counts what runs of what is loaded after it.
import './reached.ts'
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
