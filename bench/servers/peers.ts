import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Delivery, secret } from '../load/delivery.ts'
import { packageFolder } from '../../shared/version.ts'
import { type Server, freePort, startServer } from './server.ts'

/** A small server of `bench/servers`, whose argument is its port. */
export const startPeer = async (name: 'bare' | 'koa', first: Delivery): Promise<Server> => {
  const port = await freePort()
  const file = fileURLToPath(new URL(`dist/bench/servers/${name}-server.js`, packageFolder))
  return startServer({
    name,
    argv: [process.execPath, file, String(port)],
    url: `http://127.0.0.1:${port}/webhook/github`,
    first,
  })
}

/**
 * adnanh/webhook with two rules: `run` runs a program, `nothing` matches no delivery and runs nothing.
 */
export const startAdnanh = async (
  folder: string,
  command: readonly string[],
  first: Delivery,
): Promise<Server> => {
  const port = await freePort()
  const file = join(folder, `hooks-${port}.json`)
  const [program = '', ...args] = command
  const signed = {
    match: {
      type: 'payload-hmac-sha256',
      secret,
      parameter: { source: 'header', name: 'X-Hub-Signature-256' },
    },
  }
  const rule = (action: string) => ({
    match: { type: 'value', value: action, parameter: { source: 'payload', name: 'action' } },
  })
  const hook = (id: string, action: string) => ({
    id,
    'execute-command': program,
    'pass-arguments-to-command': args.map((name) => ({ source: 'string', name })),
    'success-http-response-code': 202,
    'trigger-rule': { and: [signed, rule(action)] },
    'trigger-rule-mismatch-http-response-code': 202,
  })
  await writeFile(file, JSON.stringify([hook('run', 'opened'), hook('nothing', 'closed')]))
  return startServer({
    name: 'adnanh/webhook',
    argv: ['webhook', '-hooks', file, '-ip', '127.0.0.1', '-port', String(port)],
    url: `http://127.0.0.1:${port}/hooks/run`,
    first,
  })
}
