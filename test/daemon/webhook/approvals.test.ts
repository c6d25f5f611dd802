import assert from 'node:assert/strict'
import pino from 'pino'
import { Succession } from '../../../daemon/restart/succession.ts'
import { Approvals } from '../../../daemon/webhook/approvals/approvals.ts'
import type { Chat, ChatMessage, ChatQuestion } from '../../../daemon/webhook/approvals/chat.ts'
import { KeptPayloads } from '../../../daemon/webhook/events/kept-payloads.ts'
import {
  newKey,
  startTestMachine,
  type TestMachine,
  type TestMachineOptions,
  untilTrue,
} from '../../support/queue/engines.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'

const webhooks = `[{ path: /a, agent: echo, prompt_template: x, deliver_to: "file:answers.md", approve: { when: [file], by: ["slack:#ops", "telegram:@me"], who: { slack: [U024BE7LH] } } }]`

const toApprovals = ({ memory, engine }: TestMachine): Approvals =>
  new Approvals({
    ...memory,
    payloads: new KeptPayloads(),
    current: () => engine,
    succession: new Succession(),
    hasTray: () => false,
    log: pino({ level: 'silent' }),
  })

describe('an approval in a chat', () => {
  let machine: TestMachine
  let approvals: Approvals
  let asked: ChatQuestion[]
  let updated: [ChatMessage, string][]

  const toChat = (kind: Chat['kind']): Chat => ({
    kind,
    ask: async (question) => {
      asked.push(question)
      return { channel: 'C1', id: String(asked.length) }
    },
    update: async (message, text) => void updated.push([message, text]),
  })
  const question = async (): Promise<ChatQuestion> => {
    await machine.untilState(await machine.accept('echo', 'hello'), 'waiting')
    await untilTrue(() => asked.length > 0)
    const [found] = asked
    assert.ok(found)
    // The answer of the chat comes a turn later.
    await new Promise(setImmediate)
    return found
  }
  const press = async (buttonId = '', userId = 'U024BE7LH', id = '1') =>
    approvals.press({ kind: 'slack', buttonId, userId, message: { channel: 'C1', id } })

  beforeEach(async () => {
    machine = await startTestMachine({ webhooks })
    approvals = toApprovals(machine)
    asked = []
    updated = []
    approvals.connect(toChat('slack'))
  })
  afterEach(async () => {
    approvals.release()
    await machine.stop()
  })

  it('is asked with an opaque id for each answer, and the first press counts', async () => {
    const { buttons, text, address, eventId } = await question()
    assert.equal(address, '#ops')
    assert.match(text, /file:answers\.md[^]*hello/)
    const [send, decline] = buttons.map(({ id }) => id)
    assert.ok([send, decline].every((id) => /^[\w-]{22}$/.test(id ?? '')))
    const [first, second] = await Promise.all([press(send), press(decline)])
    assert.match(first, /^Done: approved by U024BE7LH \(slack:#ops\)/)
    assert.match(second, /^Nothing changed/)
    assert.equal((await machine.untilOver(eventId)).state, 'done')
    assert.match(await machine.answers(), /hello/)
    assert.match(await press(send), /^Nothing changed: approved by U024BE7LH/)
    await untilTrue(() => updated.length > 0)
    assert.match(updated[0]?.[1] ?? '', /approved by U024BE7LH \(slack:#ops\)/)
  })

  it('is a problem of the daemon where no place has asked', async () => {
    approvals.connect({ ...toChat('slack'), ask: async () => Promise.reject(new Error('no')) })
    const id = await machine.accept('echo', 'hello')
    await machine.untilState(id, 'waiting')
    assert.deepEqual(approvals.problems(), [])
    await untilTrue(() => machine.memory.events.record(id)?.detail !== undefined)
    const { approval } = machine.memory.events.record(id) ?? {}
    assert.ok(approval)
    const askedAt = new Date(Date.now() - 60_000).toISOString()
    machine.memory.events.update(id, { approval: { ...approval, askedAt } })
    const [problem] = approvals.problems()
    assert.equal(problem?.code, 'approval-unasked')
    assert.deepEqual(problem.about, { event: id })
    approvals.connect(toChat('telegram'))
    await untilTrue(() => approvals.problems().length === 0)
  })

  it('is not asked about while 500 answers wait already', async () => {
    const full = await startTestMachine({ webhooks, keep: 600 })
    const [, second] = Array.from({ length: 500 }, () =>
      full.memory.events.add(new Date(), { kind: 'webhook', state: 'waiting' }),
    )
    const id = await full.accept('echo', 'hello')
    const { state, code } = await full.untilOver(id)
    assert.deepEqual([state, code], ['failed', 'queue-full'])
    full.memory.events.update(second?.id ?? '', { state: 'declined' })
    await full.untilState(await full.accept('echo', 'more'), 'waiting')
    assert.equal(await full.answers(), '')
    await full.stop()
  })

  it('says how much of it is not shown', async () => {
    const id = await machine.accept('echo', 'x'.repeat(4000))
    await machine.untilState(id, 'waiting')
    await untilTrue(() => asked.length > 0)
    assert.match(asked[0]?.text ?? '', /\? \(evt_\w+\) Not shown here: \d{4} more characters\./)
  })

  it('is refused to who is not named, from another message, and with a foreign id', async () => {
    const { buttons, eventId } = await question()
    const send = buttons[0]?.id
    assert.match(await press(send, 'U999'), /may not/)
    assert.match(await press(send, 'ada'), /may not/)
    assert.match(await press(send, 'U024BE7LH', '2'), /may not/)
    assert.match(await press('A'.repeat(22)), /no longer known/)
    assert.equal(machine.memory.events.record(eventId)?.state, 'waiting')
    assert.equal(await machine.answers(), '')
  })

  it('has no buttons where who names no one, and is asked once by a chat that connects late', async () => {
    await question()
    approvals.connect(toChat('telegram'))
    await untilTrue(() => asked.length === 2)
    assert.deepEqual(
      asked.map(({ address, buttons }) => [address, buttons.length]),
      [
        ['#ops', 2],
        ['@me', 0],
      ],
    )
    approvals.connect(toChat('slack'))
    await new Promise(setImmediate)
    assert.equal(asked.length, 2)
  })

  it('is for the answer that was shown, not for a later one', async () => {
    const { buttons, eventId } = await question()
    await approvals.again(eventId, { by: 'owner', where: 'cli' }, 'once more')
    await untilTrue(() => asked.length === 2)
    await machine.untilState(eventId, 'waiting')
    assert.match(await press(buttons[0]?.id), /no longer known|Nothing changed/)
    assert.equal(machine.memory.events.record(eventId)?.state, 'waiting')
  })
})

describe('an answer that waits for an approval, with NATS', () => {
  let broker: Broker
  let key: string
  const machines: TestMachine[] = []
  const start = async (
    role: 'receiver' | 'worker',
    options: TestMachineOptions = {},
  ): Promise<TestMachine> => {
    const given = { servers: broker.url, key, role, webhooks, lostAfter: '1s', ...options }
    const machine = await startTestMachine(given)
    machines.push(machine)
    await untilTrue(machine.isConnected)
    return machine
  }
  before(async () => {
    broker = await startBroker()
    key = newKey()
  })
  after(async () => {
    await Promise.all(machines.splice(0).map(async (machine) => machine.stop()))
    await broker.stop()
  })

  it('does not leave the worker with a secret that only the worker holds', async () => {
    const receiver = await start('receiver')
    const value = 'a-token-of-the-worker-4711'
    const worker = await start('worker', {
      held: [{ kind: 'login-token', name: 'login github', value }],
    })
    const id = await receiver.accept('echo', `it is ${Buffer.from(value).toString('hex')}`)
    const { state, code } = await receiver.untilOver(id)
    assert.deepEqual([state, code], ['failed', 'answer-has-secret'])
    const { result = '', resultPreview = '' } = receiver.memory.events.get(id) ?? {}
    assert.doesNotMatch(`${result}${resultPreview}`, new RegExp(Buffer.from(value).toString('hex')))
    assert.equal(await receiver.answers(), '')
    for (const machine of [worker, receiver]) {
      machines.splice(machines.indexOf(machine), 1)
      await machine.stop()
    }
  })

  it('is asked about again after a crash, and delivered once', async () => {
    const old = await start('receiver')
    await start('worker')
    const id = await old.accept('echo', 'hello')
    await old.untilState(id, 'waiting')
    machines.splice(machines.indexOf(old), 1)
    await old.vanish()
    const next = await start('receiver', { home: old.home })
    await untilTrue(() => next.memory.events.record(id)?.state === 'waiting')
    const approvals = toApprovals(next)
    await approvals.approve(id, { by: 'owner', where: 'cli' })
    assert.equal((await next.untilOver(id)).state, 'done')
    assert.equal((await next.answers()).match(/hello/g)?.length, 1)
    approvals.release()
  })

  it('gives up the message of the first answer where the agent runs again', async () => {
    const [next] = machines.slice(-1)
    assert.ok(next)
    const approvals = toApprovals(next)
    const id = await next.accept('echo', 'again')
    await next.untilState(id, 'waiting')
    await approvals.again(id, { by: 'owner', where: 'cli' }, 'shorter')
    await untilTrue(() => next.memory.events.record(id)?.approval?.remark === 'shorter')
    await approvals.reject(id, { by: 'owner', where: 'cli' })
    assert.equal(next.memory.events.record(id)?.state, 'declined')
    approvals.release()
  })
})
