import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  pack,
  seal,
  unpack,
  unseal,
  readDone,
  readProgress,
  readRun,
  readTicket,
  writeDone,
  writeNote,
  writeRun,
} from '../../../../daemon/queue/nats/messages.ts'
import type { AcceptedEvent } from '../../../../daemon/webhook/events/accepted-event.ts'

const keys = [randomBytes(32), randomBytes(32)] as const
const [key, older] = keys
const receiverKey = randomBytes(32)
const plain = Buffer.from('a prompt with a canary')
const head = { id: 'evt_1', door: 'd', run: 'r' }

const event: AcceptedEvent = {
  webhook: {
    path: '/a',
    agentName: 'fixer',
    agent: { kind: 'echo', timeout: 1, concurrency: 1, output_limit: 1000 },
    values: { eventText: 'fenced', maxValueLength: 100 },
  },
  receivedAt: new Date(0),
  known: { webhook: '/a', agent: 'fixer', size: 3, deliveryId: 'd-1', signed: true },
  prompt: 'a prompt with a canary',
  payload: Buffer.from('{"a":1}'),
  targets: [{ text: 'slack:#secret-canary', kind: 'slack', address: '#secret-canary' }],
  delivery: { webhook: '/a', hash: '\u00ff\u0001' },
}

describe('what travels between machines', () => {
  it('is opened by each key of the list, and sealed with the first', () => {
    const sealed = seal(key, 'run', 'evt_1', plain)
    assert.deepEqual(unseal(keys, 'run', 'evt_1', sealed), plain)
    assert.deepEqual(unseal(keys, 'run', 'evt_1', seal(older, 'run', 'evt_1', plain)), plain)
    assert.equal(unseal([older], 'run', 'evt_1', sealed), undefined)
  })

  it('is of one event and one kind, and cannot be changed', () => {
    const sealed = seal(key, 'run', 'evt_1', plain)
    assert.equal(unseal(keys, 'run', 'evt_2', sealed), undefined)
    assert.equal(unseal(keys, 'done', 'evt_1', sealed), undefined)
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      assert.equal(unseal(keys, 'run', 'evt_1', changed), undefined)
      assert.equal(unseal(keys, 'run', 'evt_1', sealed.subarray(0, at)), undefined)
    }
  })

  it('looks different each time', () => {
    assert.notDeepEqual(seal(key, 'run', 'evt_1', plain), seal(key, 'run', 'evt_1', plain))
  })

  it('is read as far as it is whole', () => {
    const packed = pack(Buffer.from('one'), Buffer.alloc(0), plain)
    assert.deepEqual(unpack(packed).map(String), ['one', '', String(plain)])
    for (let at = 0; at < packed.length; at += 1)
      assert.ok(unpack(packed.subarray(0, at)).length < 3)
    assert.deepEqual(unpack(randomBytes(3)), [])
    assert.ok(unpack(Buffer.alloc(8_000_000)).length < 10)
  })

  it('shows neither prompt nor target to the broker, and no target to the worker', () => {
    const message = writeRun(head, event, keys, receiverKey)
    assert.doesNotMatch(message.toString('latin1'), /canary|fixer/)
    const run = readRun(message, keys)
    assert.equal(run?.prompt, event.prompt)
    assert.deepEqual(run?.payload, event.payload)
    assert.doesNotMatch(JSON.stringify({ ...run, prompt: '' }), /canary/)
    assert.equal(readRun(message, [older]), undefined)
  })

  it('gives the receiver back what it had, and nobody else', () => {
    const run = readRun(writeRun(head, event, keys, receiverKey), keys)
    const ticket = run?.ticket ?? Buffer.alloc(0)
    const copy = readTicket(ticket, 'evt_1', receiverKey)
    assert.deepEqual(copy?.targets, event.targets)
    assert.deepEqual(copy?.receivedAt, event.receivedAt)
    assert.deepEqual(copy?.delivery, event.delivery)
    assert.equal(readTicket(ticket, 'evt_2', receiverKey), undefined)
    assert.equal(readTicket(ticket, 'evt_1', key), undefined)
  })

  it('gives the receiver nothing back that it had long ago', () => {
    const copy = { ...event, receivedAt: new Date(), madeAt: Date.now() - 4 * 86_400_000 }
    const old = seal(receiverKey, 'ticket', 'evt_1', Buffer.from(JSON.stringify(copy)))
    assert.equal(readTicket(old, 'evt_1', receiverKey), undefined)
  })

  it('is read as far as this version knows it, and not where it is something else', () => {
    const say = (value: object) => writeNote('progress', 'evt_1', value, keys)
    const progress = { run: 'r', machine: 'm', attempt: 1, queuedMs: 0 }
    assert.deepEqual(readProgress(say({ ...progress, newer: 1 }), keys)?.progress, progress)
    assert.equal(readProgress(say({ ...progress, machine: {} }), keys), undefined)
    assert.equal(readProgress(say({ ...progress, machine: 'm'.repeat(1000) }), keys), undefined)
    const change = { gitDir: '/etc', ref: 'r' }
    const more = { agentMs: 0, detail: '', text: 't', error: undefined, prompt: undefined }
    const outcome = { ...progress, ...more, seen: { head: 'h', change } }
    const done = writeDone({ id: 'evt_1', outcome, ticket: Buffer.from('t') }, keys)
    assert.deepEqual(readDone(done, keys)?.outcome.seen, { head: 'h' })
  })

  it('carries an answer, or why there is none', () => {
    const outcome = {
      machine: 'm',
      run: 'r',
      attempt: 1,
      queuedMs: 1,
      agentMs: 2,
      detail: '',
      text: 'the canary',
      seen: undefined,
      error: undefined,
      prompt: undefined,
    }
    const ticket = Buffer.from('t')
    const message = writeDone({ id: 'evt_1', outcome, ticket }, keys)
    assert.doesNotMatch(message.toString('latin1'), /canary/)
    assert.equal(readDone(message, keys)?.outcome.text, 'the canary')
    assert.deepEqual(readDone(message, keys)?.ticket, ticket)
    const error = { code: 'agent-failed', message: 'no' } as const
    const failed = writeDone({ id: 'evt_1', outcome: { ...outcome, error }, ticket }, keys)
    const read = readDone(failed, keys)?.outcome
    assert.deepEqual([read?.text, read?.error?.code], [undefined, 'agent-failed'])
  })
})
