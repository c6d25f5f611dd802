import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before } from 'mocha'
import { initHome } from '../../../shared/home/init-home.ts'
import { type Home, resolveHome } from '../../../shared/home/home.ts'
import { type LanguageServer, startLanguageServer } from '../../support/servers/language-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('an editor with the YAML language server', () => {
  let home: Home
  let server: LanguageServer
  let opened = 0

  before(async () => {
    home = resolveHome(await temporaryFolder())
    await initHome(home)
    server = await startLanguageServer()
  })
  after(async () => server?.stop())

  /** Opens a file of the home with this below its first line, which names the schema. */
  const edit = async (name: string, body: string) => {
    const [first = ''] = (await readFile(join(home.config, `${name}.yaml`), 'utf8')).split('\n')
    // A name that the server has not seen: a file is opened once.
    const path = join(home.config, `${(opened += 1)}.yaml`)
    const text = `${first}\n${body}`
    const marks = await server.open(path, text)
    /** Where a text ends, in the file. */
    const endOf = (found: string) => {
      const lines = text.slice(0, text.indexOf(found) + found.length).split('\n')
      return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 }
    }
    return { path, marks: marks.map(({ message }) => message), endOf }
  }

  for (const name of ['webhooks', 'agents', 'gateway'])
    it(`finds nothing wrong with the sample ${name}.yaml`, async () => {
      const path = join(home.config, `${name}.yaml`)
      assert.deepEqual(await server.open(path, await readFile(path, 'utf8')), [])
    })

  it('completes the keys of a webhook', async () => {
    const { path, endOf } = await edit('webhooks', 'webhooks:\n  - path: /a\n    sig\n')
    const keys = await server.complete(path, endOf('    sig'))
    for (const key of ['secret_env', 'filter', 'deliver_to']) assert.ok(keys.includes(key), key)
  })

  it('completes the names of schemes', async () => {
    const body = 'webhooks:\n  - path: /a\n    signature_scheme: \n'
    const { path, endOf } = await edit('webhooks', body)
    const values = await server.complete(path, endOf('signature_scheme: '))
    for (const scheme of ['github', 'stripe', 'slack']) assert.ok(values.includes(scheme), scheme)
  })

  it('completes the keys of gateway.yaml', async () => {
    const { path, endOf } = await edit('gateway', 'server:\n  \n')
    const keys = await server.complete(path, endOf('server:\n  '))
    assert.ok(keys.includes('public_port') && keys.includes('body_limit'), keys.join())
  })

  it('explains the key under the mouse', async () => {
    const { path, endOf } = await edit('webhooks', 'webhooks:\n  - path: /a\n    secret_env: A\n')
    assert.match(
      await server.hover(path, endOf('secret_e')),
      /Environment variable with the secret/,
    )
  })

  it('marks an unknown key, a wrong type and what is missing', async () => {
    const body = 'webhooks:\n  - path: /a\n    agent: echo\n    secret_evn: A\n    enabled: soon\n'
    const { marks } = await edit('webhooks', body)
    assert.ok(
      marks.some((message) => message.includes('secret_evn')),
      marks.join('\n'),
    )
    assert.ok(
      marks.some((message) => /boolean/.test(message)),
      marks.join('\n'),
    )
    assert.ok(
      marks.some((message) => message.includes('prompt_template')),
      marks.join('\n'),
    )
  })

  it('knows the keys of each kind of agent', async () => {
    const body =
      'agents:\n  local:\n    kind: openai\n    \n  bad:\n    kind: echo\n    command: [a]\n'
    const { path, marks, endOf } = await edit('agents', body)
    const keys = await server.complete(path, endOf('kind: openai\n    '))
    assert.ok(keys.includes('base_url'), keys.join())
    assert.ok(
      marks.some((message) => message.includes('command')),
      marks.join('\n'),
    )
  })
})
