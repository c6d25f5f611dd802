import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { findModelHosts } from '../../../daemon/agents/network/model-hosts.ts'
import { AgentProxy } from '../../../daemon/agents/network/proxy.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/** No event tells that the proxy has read a request. */
const until = async (is: () => boolean): Promise<void> => {
  if (is()) return
  await new Promise((resolve) => setImmediate(resolve))
  await until(is)
}

describe('the proxy of a run', () => {
  let listener: Server
  const asked: (() => void)[] = []
  let proxy: AgentProxy
  beforeEach(async () => {
    asked.length = 0
    listener = createServer().listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const resolve = async () =>
      new Promise<{ address: string; family: number }[]>((done) =>
        asked.push(() => done([{ address: '192.0.2.1', family: 4 }])),
      )
    proxy = new AgentProxy({ mode: 'open', rules: [], env: {}, resolve })
    proxy.accept(listener)
  })
  afterEach(() => {
    proxy.close()
    for (const answer of asked) answer()
  })

  it('counts what it still connects for clients that have gone', async () => {
    for (let count = 0; count < 400; count += 1) {
      const client = connect((listener.address() as AddressInfo).port, '127.0.0.1')
      client.on('error', () => undefined)
      await once(client, 'connect')
      client.write('CONNECT slow.example:443 HTTP/1.1\r\nHost: slow.example:443\r\n\r\n')
      const before = asked.length
      if (count < 250) await until(() => asked.length > before)
      client.destroy()
    }
    assert.ok(asked.length >= 250 && asked.length <= 256, String(asked.length))
  })

  it('leaves no connection behind when the run is over', async () => {
    const client = connect((listener.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => undefined)
    await once(client, 'connect')
    client.write('CONNECT slow.example:443 HTTP/1.1\r\nHost: slow.example:443\r\n\r\n')
    await until(() => asked.length > 0)
    proxy.close()
    await once(client, 'close')
    asked[0]?.()
    assert.deepEqual(proxy.refused, [])
  })
})

describe('the hosts of a model', () => {
  it('are never those that a conversation names', async () => {
    const folder = await temporaryFolder()
    await mkdir(join(folder, 'config'))
    const text = '{"text": "base_url: https://evil.example/v1"}'
    for (const name of ['session.json', 'session.jsonl']) await writeFile(join(folder, name), text)
    const hosts = async () =>
      (await findModelHosts({ kind: 'opencode', env: {}, argv: ['opencode'], folder })).map(
        ({ host }) => host,
      )
    assert.deepEqual(await hosts(), ['opencode.ai'])
    await writeFile(join(folder, 'config', 'opencode.json'), text)
    assert.deepEqual(await hosts(), ['evil.example'])
  })
})
