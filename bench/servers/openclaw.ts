import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Delivery } from '../load/delivery.ts'
import { openclawPrograms } from '../openclaw-folder.ts'
import { type Server, freePort, startServer } from './server.ts'

const hookToken = 'bench-hook-token-0123456789abcdef'

/** The same, with the bearer token that its hooks want in place of a signature. */
export const withHookToken = ({ body, headers }: Delivery): Delivery => ({
  body,
  headers: { ...headers, Authorization: `Bearer ${hookToken}` },
})

/**
 * Its gateway with one hook: a template makes a line of the payload, which waits for the next turn of an
 * agent that there is none of (docs.openclaw.ai, Webhooks).
 */
export const startOpenclaw = async (folder: string, first: Delivery): Promise<Server> => {
  const port = await freePort()
  const home = await mkdtemp(join(folder, 'openclaw-'))
  await mkdir(join(home, '.openclaw'), { mode: 0o700 })
  const config = {
    gateway: {
      mode: 'local',
      port,
      bind: 'loopback',
      auth: { mode: 'token', token: 'bench-gateway-token-0123456789' },
    },
    hooks: {
      enabled: true,
      token: hookToken,
      path: '/hooks',
      mappings: [
        {
          match: { path: 'github' },
          action: 'wake',
          wakeMode: 'next-heartbeat',
          textTemplate: 'Pull request #{{number}}: {{pull_request.title}}',
        },
      ],
    },
  }
  await writeFile(join(home, '.openclaw', 'openclaw.json'), JSON.stringify(config), { mode: 0o600 })
  return startServer({
    name: 'openclaw',
    argv: [openclawPrograms.node, openclawPrograms.openclaw, 'gateway', 'run'],
    url: `http://127.0.0.1:${port}/hooks/github`,
    first: withHookToken(first),
    env: { HOME: home },
  })
}
