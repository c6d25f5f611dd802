import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { KeychainReply } from './keychain.ts'

/*
 * Asks the keychain of the desktop for the key of the token files, and prints the reply as JSON. This is a
 * process of its own, because a locked keychain waits for its owner, and nothing else can end that wait.
 */

const ask = async (mayCreate: boolean): Promise<KeychainReply> => {
  const library = await import('@napi-rs/keyring').catch(() => undefined)
  if (!library) return { is: 'no-package' }
  try {
    // By default it falls back to the kernel's keyring, which is empty after a reboot.
    const options = { linux: { store: 'secret-service' } } as const
    const entry = new library.AsyncEntry('doorward', 'token-key', options)
    const found = await entry.getPassword()
    if (found !== null) return { is: 'key', key: found }
    if (!mayCreate) return { is: 'empty' }
    await entry.setPassword(randomBytes(32).toString('base64'))
    // The daemon of another home may replace it with a key of its own at this moment: the last one counts.
    await setTimeout(500)
    const stored = await entry.getPassword()
    return stored === null ? { is: 'empty' } : { is: 'key', key: stored }
  } catch (error) {
    const detail = error instanceof Error ? error.message : 'no reason given'
    return /\b(locked|dismissed|cancell?ed|interaction)\b/i.test(detail)
      ? { is: 'locked' }
      : { is: 'unreachable', detail }
  }
}

// Ends together with the daemon. An exit would wait for the call that hangs.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL')).resume()
const reply = ask(process.argv.includes('--create'))
void reply.then((value) => process.stdout.write(JSON.stringify(value), () => process.exit()))
