import { once } from 'node:events'
import { type RequestListener, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { identifyListener } from '../../shared/client/client.ts'
import { DoorwardError } from '../../shared/errors.ts'

/**
 * Makes sure, before the running daemon lets go, that this one answers and can prove who it is. On a
 * port of its own, where nothing but `/health` is let through. Throws `internal`.
 */
export const prove = async (app: RequestListener, apiToken: string): Promise<void> => {
  const server = createServer((request, response) => {
    if (request.url === '/health') app(request, response)
    else request.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const occupant = await identifyListener(`http://127.0.0.1:${port}`, apiToken)
  server.close()
  server.closeAllConnections()
  if (occupant !== 'ours')
    throw new DoorwardError('internal', 'it does not answer as it should when it asks itself')
}
