import assert from 'node:assert/strict'
import { collectWarnings } from '../../../../shared/config/warnings.ts'
import { check, refuses, webhook } from '../../../support/daemon/config-files.ts'

const source = (fields: string) => ({ webhooks: webhook(`    source: ${fields}\n`) })
const at = 'webhooks.yaml:5:15 webhooks[0].source'

describe('a source on this machine', () => {
  it('needs no secret, and no warning of one', () => {
    const config = check(source('{ command: [tail, -f, /var/log/syslog] }'))
    const [{ feed } = { feed: undefined }] = config.webhooks
    assert.deepEqual(feed, {
      kind: 'command',
      argv: ['tail', '-f', '/var/log/syslog'],
      batchMs: 0,
      maxWaiting: 100,
    })
    assert.deepEqual(collectWarnings(config, {}), [])
    const [files] = check(source("{ files: ['~/in/*.pdf'] }")).webhooks
    assert.deepEqual(files?.feed, {
      kind: 'files',
      globs: ['~/in/*.pdf'],
      events: ['created', 'changed'],
    })
  })

  refuses({
    'two of them': [
      source('{ command: [a], files: [/a] }'),
      'webhooks.yaml:5:29 webhooks[0].source.files: not used with command (remove it)',
    ],
    'one beside a sender': [
      source('{ provider: stripe, key_env: KEY, mode: poll, command: [a] }'),
      'webhooks.yaml:5:5 webhooks[0].source: signature_scheme hmac is not that of stripe',
      'webhooks.yaml:5:59 webhooks[0].source.command: not used with provider (remove one of them)',
    ],
    'none at all': [
      source('{ batch: 1s }'),
      `${at.replace(':15', ':5')}: it has neither provider, command nor files`,
    ],
    'a part of a path': [
      source("{ files: ['in/*.pdf'] }"),
      'webhooks.yaml:5:15 webhooks[0].source.files: "in/*.pdf" is no whole path (write /home/me/inbox/*.pdf or ~/inbox/*.pdf)',
    ],
    'a batch of an hour': [
      source('{ command: [a], batch: 1h }'),
      'webhooks.yaml:5:29 webhooks[0].source.batch: must be at most 1m',
    ],
    'a secret': [
      { webhooks: webhook('    secret_env: A\n    source: { command: [a] }\n') },
      'webhooks.yaml:5:5 webhooks[0].secret_env: has no effect: nothing is sent to this path (remove it)',
    ],
  })
})
