import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import { describe, it } from 'mocha'
import { findUser, parseTcpTable, userOfPeer } from '../../../shared/network/tcp-table.ts'

/* Lines of /proc/net/tcp and /proc/net/tcp6 of Linux 6.1 on x86-64. */
const line = (local: string, remote: string, user: number) =>
  `  12: ${local} ${remote} 01 00000000:00000000 00:00000000 00000000  ${user}        0 1126 1 00000000091a13fb 20 4 30 10 -1`
const ours = { address: '127.0.0.1', port: 18_789 }
const peer = { address: '127.0.0.1', port: 52_884 }
const v4 = '0100007F'
const mapped = '0000000000000000FFFF00000100007F'
const v6 = '00000000000000000000000001000000'
const server = line(`${v4}:4965`, `${v4}:CE94`, 1000)

describe('the user at the other end of a connection', () => {
  const table: readonly (readonly [string, string, number | 'unlisted' | undefined])[] = [
    ['over IPv4', `${server}\n${line(`${v4}:CE94`, `${v4}:4965`, 1001)}`, 1001],
    [
      'over IPv4 by a socket of IPv6',
      `${server}\n${line(`${mapped}:CE94`, `${mapped}:4965`, 7)}`,
      7,
    ],
    ['with other connections', `${line(`${v4}:CE94`, `${v4}:4966`, 9)}\n${server}`, 'unlisted'],
    ['that is not in the tables', server, 'unlisted'],
    ['where the tables say nothing', '  sl  local_address rem_address', undefined],
    ['where there are none', '', undefined],
  ]
  for (const [where, tables, user] of table)
    it(`is found ${where}`, () => assert.equal(findUser(parseTcpTable(tables), peer, ours), user))

  it('is found over IPv6', () => {
    const six = (port: number) => ({ address: '::1', port })
    const entry = line(`${v6}:CE94`, `${v6}:4965`, 5)
    assert.equal(findUser(parseTcpTable(entry), six(peer.port), six(ours.port)), 5)
  })

  it('is this one for a connection of its own', async function () {
    if (process.platform !== 'linux') return this.skip()
    for (const host of ['127.0.0.1', '::']) {
      const server = createServer().listen(0, host)
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const client = connect(port, '127.0.0.1')
      const [socket] = (await once(server, 'connection')) as [Socket]
      assert.equal(await userOfPeer(socket), process.getuid?.())
      client.destroy()
      socket.destroy()
      server.close()
    }
    return undefined
  })
})
