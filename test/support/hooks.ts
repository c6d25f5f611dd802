import { killDaemons } from './daemon/daemon.ts'
import { killLanguageServers } from './servers/language-server.ts'
import { killBrokers } from './servers/nats.ts'
import { removeTemporaryFolders } from './temporary.ts'

/** Leaves nothing behind, whatever a test did. */
export const mochaHooks = {
  async afterAll(): Promise<void> {
    killDaemons()
    killBrokers()
    killLanguageServers()
    await removeTemporaryFolders()
  },
}
