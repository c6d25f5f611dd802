import type { ChildProcess } from 'node:child_process'

const servers = new Set<ChildProcess>()

/** A server that is not left behind when the bench is ended by a signal, or fails. */
export const endWithUs = (server: ChildProcess): void => {
  if (servers.size === 0) {
    process.once('exit', () => {
      for (const one of servers) one.kill()
    })
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.once(signal, () => process.exit(130))
  }
  servers.add(server)
}
