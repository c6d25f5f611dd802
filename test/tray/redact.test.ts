import assert from 'node:assert/strict'
import type { WebhookSummary } from '../../shared/api/api.ts'
import { privateWords, redact } from '../../tray/text.ts'
import { statusWith } from '../support/daemon/fake-daemon.ts'

describe('redact', () => {
  const status = statusWith({
    publicUrl: 'https://hooks.example.org',
    providers: [
      { provider: 'mine', clientKnown: true, status: 'ok', account: { id: '12345', name: 'octo' } },
    ],
    webhooks: [
      { path: '/hard-to-guess', secret: 'none' },
      { path: '/signed', secret: 'set' },
    ] as WebhookSummary[],
  })

  it('removes accounts, mail addresses, unsigned paths and the public URL from any text', () => {
    const report = {
      'octo at mine': ['logged in as octo (12345)', { ok: true, count: 3, none: null }],
      hooks: 'https://hooks.example.org/webhook/hard-to-guess and /signed, write to a.b+c@d-e.org.',
    }
    assert.deepEqual(redact(report, privateWords(status)), {
      '<account> at mine': [
        'logged in as <account> (<account>)',
        { ok: true, count: 3, none: null },
      ],
      hooks: '<public url>/webhook<unsigned webhook> and /signed, write to <mail>.',
    })
  })

  it('replaces the longest first, and no very short text', () => {
    const words = [
      ['/home/ada', '~'],
      ['/home/ada/.doorward', '<home>'],
      ['a', 'x'],
    ] as const
    assert.equal(redact('/home/ada/.doorward in /home/ada', words), '<home> in ~')
  })
})
