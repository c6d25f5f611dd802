import { readEnvironment } from '../shared/config/environment.ts'
import type { Home } from '../shared/home/home.ts'
import { loadConfig } from '../shared/config/load.ts'
import { portHeldHint, portHolder } from '../shared/client/discovery.ts'

/**
 * What to do about another program that has the port on which the daemon of this home would listen;
 * undefined when none has, or the system does not tell. Never throws: what is wrong with the
 * configuration is told by the start.
 */
export const portTaken = async (home: Home): Promise<string | undefined> => {
  const port = await portOf(home).catch(() => undefined)
  const holder = port === undefined ? undefined : await portHolder(port)
  if (!holder) return undefined
  return `port ${port} is held by ${holder.name} (pid ${holder.pid}): ${portHeldHint}`
}

const portOf = async (home: Home): Promise<number> => {
  const { gateway } = await loadConfig(home, await readEnvironment(home))
  return gateway.server.port
}
