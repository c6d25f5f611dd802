import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, type Server, createServer } from 'node:net'
import { foreignDaemonError } from '../../../shared/client/discovery.ts'

describe('why a daemon cannot be used', () => {
  if (process.platform !== 'linux') return

  let server: Server
  let port: number
  before(async () => {
    server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    ;({ port } = server.address() as AddressInfo)
  })
  after(() => server.close())

  const why = async (pid: number, found: Parameters<typeof foreignDaemonError>[1]) => {
    const url = `http://127.0.0.1:${port}`
    const { code, message } = await foreignDaemonError(
      { pid, url, version: '1', startedAt: '' },
      found,
    )
    return [code, message.replace(/by (?!the ).+ \(/, 'by NAME (')]
  }

  it('is another program, by name', async () => {
    const taken = `port ${port} is used by NAME (pid ${process.pid}), not by the daemon`
    assert.deepEqual(await why(1, 'stranger'), ['daemon-foreign', taken])
    assert.deepEqual(await why(1, 'silent'), ['daemon-foreign', taken])
    assert.deepEqual(await why(1, 'hung-up'), ['daemon-foreign', taken])
  })

  it('is the daemon of another home', async () => {
    assert.deepEqual(await why(1, 'other-doorward'), [
      'daemon-foreign',
      `port ${port} is used by the daemon of another home (pid ${process.pid})`,
    ])
  })

  it('is the daemon itself, which accepts no more connections', async () => {
    const { pid } = process
    assert.deepEqual(await why(pid, 'hung-up'), [
      'daemon-silent',
      `the daemon (pid ${pid}) closes each connection`,
    ])
  })

  it('advises to kill a process only where that has the port', async () => {
    const hintFor = async (url: string) =>
      (await foreignDaemonError({ pid: process.pid, url, version: '1', startedAt: '' }, 'silent'))
        .hint
    assert.match((await hintFor(`http://127.0.0.1:${port}`)) ?? '', /: kill -9 \d+, then doorward/)
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port: unused } = free.address() as AddressInfo
    free.close()
    await once(free, 'close')
    assert.equal(
      await hintFor(`http://127.0.0.1:${unused}`),
      `wait; if it hangs: stop process ${process.pid} if it is doorward, then doorward daemon start`,
    )
  })

  it('is the daemon itself, which hangs or was started with another token', async () => {
    const { pid } = process
    assert.deepEqual(await why(pid, 'silent'), [
      'daemon-silent',
      `the daemon (pid ${pid}) does not answer`,
    ])
    assert.deepEqual(await why(pid, 'other-doorward'), [
      'unauthorized',
      `run/api.token is not the one that the daemon (pid ${pid}) was started with`,
    ])
  })
})
