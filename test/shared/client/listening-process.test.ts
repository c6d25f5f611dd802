import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { parseLsof, findListeningProcess } from '../../../shared/client/discovery.ts'
import { parseTcpTable } from '../../../shared/network/tcp-table.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const program = `
const server = require('node:net').createServer().listen(0, '127.0.0.1', () =>
  process.send(server.address().port))
`

describe('who holds a port', () => {
  before(function () {
    if (process.platform !== 'linux' && process.platform !== 'darwin') this.skip()
  })

  it('is named with its pid and program', async () => {
    const script = join(await temporaryFolder(), 'gateway.cjs')
    await writeFile(script, program)
    // As a daemon of ours is started, with an option before its script.
    const child = spawn(process.execPath, ['--max-semi-space-size=2', script], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const [port] = (await once(child, 'message')) as [number]
    const holder = await findListeningProcess(port)
    assert.equal(holder?.pid, child.pid)
    assert.match(holder?.name ?? '', process.platform === 'linux' ? /^node gateway\.cjs$/ : /node/)
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    assert.equal(await findListeningProcess(port), undefined)
  })

  it('is undefined for a port with outgoing connections only', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    assert.equal((await findListeningProcess(port))?.pid, process.pid)
    server.close()
    await once(server, 'close')
    assert.equal(await findListeningProcess(port), undefined)
  })

  it('is parsed from the output of the system, only name and pid', () => {
    const table = [
      '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
      '   0: 0100007F:4965 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 41234 1 0',
      '   1: 0100007F:4965 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000 0 41235 1 0',
      '   2: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 0 41236 1 0',
    ].join('\n')
    const listening = parseTcpTable(table).filter(({ isListening }) => isListening)
    assert.deepEqual(
      listening.map(({ local, inode }) => [local, inode]),
      [
        ['0100007F:4965', '41234'],
        ['0100007F:0016', '41236'],
      ],
    )
    assert.deepEqual(parseTcpTable(''), [])
    assert.deepEqual(parseLsof('p501\ncopenclaw\nf20\np502\ncnode\n'), {
      pid: 501,
      name: 'openclaw',
    })
    assert.equal(parseLsof(''), undefined)
  })
})
