import assert from 'node:assert/strict'
import { setSource } from '../../../../cli/commands/webhook/connect-entry.ts'
import { DoorwardError } from '../../../../shared/errors.ts'

const source = { provider: 'github', repository: 'acme/door.js', hookId: 7 } as const
const line = 'source: { provider: github, repository: acme/door.js, hook_id: 7 }'

describe('the line source of an entry', () => {
  it('is written below the path, changed and removed, and nothing else is', () => {
    const texts = [
      ['webhooks:\n- agent: echo # mine\n  path: /a', `\n  ${line}`],
      ['webhooks:\r\n    -   path: /a\r\n\r\n        agent: echo\r\n', `\r\n        ${line}`],
      ['webhooks:\n  - path: "/a" # why\n    prompt_template: |\n      x\n', `\n    ${line}`],
    ] as const
    for (const [text, added] of texts) {
      const written = setSource(text, 0, source)
      assert.equal(written, text.replace(/path: .*\/a"?( # why)?/, `$&${added}`))
      const changed = setSource(written, 0, { ...source, hookId: 12 })
      assert.equal(changed, written.replace('hook_id: 7', 'hook_id: 12'))
      assert.equal(setSource(changed, 0, undefined), text)
    }
  })

  it('keeps how missed deliveries are handled, and stays as it is where the hook is the same', () => {
    const settings = 'catch_up: newest, at_most: 5'
    const own = line.replace(' }', `, ${settings} }`)
    const text = `webhooks:\n  - path: /a\n    ${own} # mine\n`
    assert.equal(setSource(text, 0, source), text)
    assert.equal(
      setSource(text, 0, { ...source, hookId: 12 }),
      text.replace('hook_id: 7', 'hook_id: 12').replace(' # mine', ''),
    )
    const block =
      'webhooks:\n  - path: /a\n    source:\n      provider: github\n      repository: acme/door.js\n      hook_id: 7\n'
    assert.equal(setSource(block, 0, source), block)
  })

  it('is refused where it cannot be a line of its own, with what to write by hand', () => {
    for (const text of [
      'webhooks: [{ path: /a }]\n',
      'webhooks:\n  - { path: /a, agent: echo }\n',
      'webhooks:\n  - path:\n      /a\n',
    ])
      assert.throws(
        () => setSource(text, 0, source),
        (error) => error instanceof DoorwardError && error.hint?.endsWith(line) === true,
        text,
      )
    const block = 'webhooks:\n  - path: /a\n    source:\n      provider: github\n'
    assert.throws(() => setSource(block, 0, undefined), /cannot be changed the way/)
  })
})
