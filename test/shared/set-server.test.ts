import assert from 'node:assert/strict'
import { setServer } from '../../shared/set-server.ts'

const url = 'https://a.example'
const set = (text: string) => setServer(text, { public_url: url })

describe('writing a key of server', () => {
  it('keeps every other byte', () => {
    const texts: readonly (readonly [string, string])[] = [
      ['', `server:\n  public_url: ${url}\n`],
      ['# a\n', `# a\n\nserver:\n  public_url: ${url}\n`],
      ['oauth: {}', `oauth: {}\n\nserver:\n  public_url: ${url}\n`],
      ['server:\n# b\n', `server:\n  public_url: ${url}\n# b\n`],
      ['server: # b\n  # port: 1\n', `server: # b\n  public_url: ${url}\n  # port: 1\n`],
      ['server: { port: 1 } # b\n', `server: { public_url: ${url}, port: 1 } # b\n`],
      ['server: {}\n', `server: { public_url: ${url} }\n`],
      [
        'server:\r\n    port: 1 # b\r\na: 1',
        `server:\r\n    port: 1 # b\r\n    public_url: ${url}\r\na: 1`,
      ],
      [
        'server:\n  public_url: "https://b" # c\n  port: 1\n',
        `server:\n  public_url: ${url} # c\n  port: 1\n`,
      ],
      ['server:\n  public_url:\n  port: 1\n', `server:\n  public_url: ${url}\n  port: 1\n`],
      ['server: {port: 1, public_url: https://b}\n', `server: {port: 1, public_url: ${url}}\n`],
    ]
    for (const [before, after] of texts) {
      assert.equal(set(before), after)
      assert.equal(set(after), after)
    }
    assert.equal(setServer('server: {}', { public_port: 5 }), 'server: { public_port: 5 }')
  })

  it('refuses what it would change otherwise', () => {
    for (const text of ['a: &x { port: 1 }\nserver: *x\n', 'server: null\n', 'server: 1\n', '{}\n'])
      assert.throws(() => set(text), /server\.public_url cannot be written/)
  })
})
