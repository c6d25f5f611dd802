import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { prepareHome } from '../../shared/home/home.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { sendOpen } from '../support/servers/raw.ts'
import { filesIn, temporaryHome } from '../support/temporary.ts'

/** Names that lead elsewhere, or into the language, in all the ways an address can write them. */
const hostile = [
  '..',
  '../config',
  '..%2fconfig%2fgateway',
  '%2e%2e',
  '%2e%2e%2f.env',
  '%2e%2e%5c.env',
  '..%5c..%5c.env',
  '....//',
  '%252e%252e%252frun%252fapi.token',
  '..%c0%af..%c0%af.env',
  '%00',
  'mine%00.json',
  'mine%2f..%2f..%2fcanary',
  '%2fetc%2fpasswd',
  '..%2f..%2fcanary',
  'canary%0d%0aX-Injected:%20yes',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'CON',
  'mine.json',
  'mine.',
  'MINE',
  '%6dine%20',
  '~',
  '-h',
  '*',
  '%u002e%u002e',
  '%ff',
  '%',
  'x'.repeat(3000),
]

const canary = 'a canary outside the folders of tokens'

describe('a name in the address of a request', () => {
  let daemon: RunningDaemon
  let filesBefore: string[]

  before(async () => {
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }
providers:
  mine: { authorization_endpoint: "https://id.example/a", token_endpoint: "https://id.example/t", client_id: x }
`,
    })
    await prepareHome(home)
    // Both are what a token file may be: only their names must keep them from being given out.
    const record = JSON.stringify({ accessToken: canary, tokenType: 'Bearer', scopes: [] })
    await writeFile(join(home.root, 'canary.json'), record, { mode: 0o600 })
    await mkdir(join(home.root, 'canary'), { mode: 0o700 })
    daemon = await startDaemon({ home })
    filesBefore = await filesIn(home.root)
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const ask = async (method: string, target: string): Promise<string> => {
    const { host } = new URL(daemon.url)
    return sendOpen(
      daemon.url,
      `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${daemon.apiToken}\r\nConnection: close\r\n\r\n`,
    )
  }

  for (const [method, path] of [
    ['GET', (name: string) => `/oauth/tokens/${name}/access`],
    ['DELETE', (name: string) => `/oauth/tokens/${name}`],
    ['DELETE', (name: string) => `/oauth/tokens/${name}?forget=true`],
    ['GET', (name: string) => `/oauth/logins/${name}`],
    ['DELETE', (name: string) => `/oauth/logins/${name}`],
    ['GET', (name: string) => `/events/${name}`],
    ['POST', (name: string) => `/events/${name}/retry`],
    ['POST', (name: string) => `/events/${name}/cancel`],
    ['POST', (name: string) => `/events/${name}/link`],
    ['GET', (name: string) => `/${name}`],
    ['POST', (name: string) => `/webhook/${name}`],
  ] as const)
    it(`reaches nothing by ${method} ${path(':name')}`, async () => {
      for (const name of hostile) {
        const answer = await ask(method, path(name))
        const [head = '', body = ''] = answer.split('\r\n\r\n')
        assert.match(head, /^HTTP\/1\.1 4\d\d /, `${name}: ${head}`)
        assert.ok(!/^x-injected/im.test(head), name)
        for (const secret of [canary, daemon.apiToken, 'root:'])
          assert.ok(!answer.includes(secret), name)
        // A name comes back in no answer but where it has the form of one.
        if (!/^[a-z]+$/i.test(name)) assert.ok(!body.includes(decoded(name)), `${name}: ${body}`)
      }
    })

  it('has made, changed or removed no file', async () => {
    assert.deepEqual(await filesIn(daemon.home.root), filesBefore)
  })

  it('is refused in a login too, by whatever it is called', async () => {
    const { host } = new URL(daemon.url)
    for (const name of hostile.map(decoded)) {
      const body = JSON.stringify({ provider: name, clientId: 'x' })
      const answer = await sendOpen(
        daemon.url,
        `POST /oauth/start HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${daemon.apiToken}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
      )
      assert.match(answer, /^HTTP\/1\.1 4\d\d /, name)
    }
    assert.deepEqual(await filesIn(daemon.home.root), filesBefore)
  })
})

const decoded = (name: string): string => {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
