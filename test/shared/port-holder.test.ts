import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { holderOf, isPortHeld } from '../../shared/port-holder.ts'

describe('who holds a port', () => {
  if (process.platform !== 'linux') return

  for (const host of ['127.0.0.1', '0.0.0.0', '::', '::1', '127.0.0.9', '::ffff:127.0.0.1'])
    it(`is the process that listens at ${host}`, async () => {
      const server = createServer().listen(0, host)
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      assert.equal((await holderOf(port))?.pid, process.pid)
      assert.match((await holderOf(port))?.name ?? '', /\S/)
      assert.equal(isPortHeld(port), true)
      server.close()
      await once(server, 'close')
      assert.equal(await holderOf(port), undefined)
      assert.equal(isPortHeld(port), false)
    })
})
