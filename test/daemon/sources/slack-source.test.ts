import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { DoorwardError } from '../../../shared/errors.ts'
import type { SlackPress } from '../../../daemon/sources/slack/envelope.ts'
import { SlackSource, type SlackSourceParts } from '../../../daemon/sources/slack/slack-source.ts'
import { slackEvent, SlackServer } from '../../support/servers/slack-server.ts'
import { Taker, untilState } from '../../support/servers/watched-source.ts'

const hourMs = 3_600_000
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const token = { token: 'xapp-1-A0APP-1-abc', name: 'SLACK_APP_TOKEN' }

describe('a socket of Slack', () => {
  let slack: SlackServer
  let taker: Taker
  let source: SlackSource
  let presses: SlackPress[]

  const start = (more: Partial<SlackSourceParts> = {}): SlackSource => {
    source = new SlackSource({
      ...taker.services,
      apiUrl: slack.url,
      token,
      pressed: async (press) => void presses.push(press),
      ...more,
    })
    source.start()
    return source
  }

  beforeEach(async () => {
    slack = await SlackServer.start()
    taker = new Taker()
    presses = []
  })

  afterEach(async () => {
    await source.stop()
    await slack.close()
  })

  it('brings the body of an event as Slack posts it, and acknowledges it after the queue has it', async () => {
    start()
    const event = slackEvent('Ev1', { type: 'app_mention', text: '<@U0BOT> hello' })
    assert.equal(await slack.deliver(event), 1)
    assert.deepEqual(taker.payloads(), [event.payload])
    const [delivery] = taker.taken
    assert.equal(delivery?.source, 'slack')
    assert.equal(delivery?.deliveryId, undefined)
    assert.equal(slack.calls[0]?.token, token.token)
    assert.equal(source.status().state, 'connected')
  })

  it('identifies a slash command and a press by themselves, as they have no event_id', async () => {
    start()
    const command = { command: '/ask', text: 'x', trigger_id: '13345224609.738474920.8088930838' }
    await slack.deliver({ type: 'slash_commands', payload: command })
    await slack.deliver({ type: 'interactive', payload: { type: 'block_actions', actions: [] } })
    assert.deepEqual(taker.payloads()[0], command)
    const ids = taker.taken.map(({ deliveryId }) => deliveryId)
    assert.deepEqual(ids, [command.trigger_id, 'envelope-2'])
  })

  it('leaves an event that the full queue refuses to Slack, which sends it again', async () => {
    slack.patienceMs = 50
    taker.refusals.push(new DoorwardError('queue-full', 'the queue is full'))
    start()
    assert.equal(await slack.deliver(slackEvent('Ev1', { type: 'message' })), 2)
    assert.equal(taker.taken.length, 1)
  })

  it('acknowledges what no repetition would change', async () => {
    taker.refusals.push(new DoorwardError('template-failed', 'a template failed'))
    start()
    assert.equal(await slack.deliver(slackEvent('Ev1', { type: 'message' })), 1)
    assert.equal(taker.taken.length, 0)
  })

  it('leaves all to the daemon that takes over', async () => {
    slack.patienceMs = 50
    taker.serving = false
    start()
    const delivered = slack.deliver(slackEvent('Ev1', { type: 'message' }))
    await slack.untilOpen()
    const other = new Taker()
    const successor = new SlackSource({
      ...other.services,
      apiUrl: slack.url,
      token,
      pressed: () => Promise.resolve(),
    })
    successor.start()
    await other.untilTaken(1)
    await delivered
    assert.equal(taker.taken.length, 0)
    await successor.stop()
  })

  it('keeps a press of one of our buttons from the rules, and gives it to the approval', async () => {
    start()
    await slack.deliver({
      type: 'interactive',
      payload: {
        type: 'block_actions',
        user: { id: 'U0ADA', name: 'U024BE7LH' },
        team: { id: 'T0TEAM' },
        channel: { id: 'C0CHANNEL' },
        message: { ts: '1795000000.000200' },
        response_url: 'https://hooks.slack.com/actions/T0TEAM/1/abc',
        actions: [{ action_id: 'doorward-approval-0', value: 'x'.repeat(22) }],
      },
    })
    assert.equal(taker.taken.length, 0)
    assert.deepEqual(
      presses.map(({ answerTo, ...press }) => ({ ...press, host: answerTo?.host })),
      [
        {
          buttonId: 'x'.repeat(22),
          userId: 'U0ADA',
          teamId: 'T0TEAM',
          message: { channel: 'C0CHANNEL', id: '1795000000.000200' },
          host: 'hooks.slack.com',
        },
      ],
    )
  })

  it('answers a press at no other server than Slack', async () => {
    start()
    await slack.deliver({
      type: 'interactive',
      payload: {
        type: 'block_actions',
        response_url: 'https://evil.example/',
        actions: [{ action_id: 'doorward-approval-0', value: 'x' }],
      },
    })
    assert.equal(presses[0]?.answerTo, undefined)
  })

  it('opens a second socket before the first one ends, and hears both', async () => {
    start()
    await slack.untilOpen()
    taker.nowMs += 3_600_000
    slack.disconnect('warning', false)
    await slack.untilOpen(2)
    await Promise.all([
      slack.deliver(slackEvent('Ev1', { type: 'message', ts: '1' })),
      slack.deliver(slackEvent('Ev2', { type: 'message', ts: '2' })),
    ])
    assert.equal(taker.taken.length, 2)
    assert.equal(source.status().state, 'connected')
  })

  it('gives up a socket that falls silent, as after sleep or behind NAT', async () => {
    await untilState(start({ times: { ping: 5 } }), 'connected')
    slack.cutSilently()
    const delivered = slack.deliver(slackEvent('Ev1', { type: 'message' }))
    taker.nowMs += 8 * 3_600_000
    assert.equal(await delivered, 1)
    assert.equal(slack.countCalls('apps.connections.open'), 2)
  })

  it('waits longer and longer where sockets are closed as soon as they open', async () => {
    slack.closesAtOnce = true
    start()
    const began = performance.now()
    await slack.untilCalled('apps.connections.open', 3)
    assert.ok(performance.now() - began > 1400, 'two pauses: half a second and a second at least')
    assert.notEqual(source.status().state, 'failed')
  })

  it('waits as long as Slack asks', async () => {
    slack.opens = [{ ok: false, error: 'ratelimited', status: 429, retryAfter: 1 }, undefined]
    start()
    const began = performance.now()
    await untilState(source, 'connected')
    assert.ok(performance.now() - began >= 990)
  })

  it('ends where no other attempt would help, and tells what fixes it', async () => {
    for (const error of [
      'not_authed',
      'invalid_auth',
      'account_inactive',
      'user_removed_from_team',
      'team_disabled',
      'missing_scope',
    ]) {
      slack.opens = [{ ok: false, error }]
      const before = slack.calls.length
      start()
      await taker.untilTold()
      const fault = taker.told.pop()
      assert.match(fault?.message ?? '', new RegExp(`^slack answered ${error}: `))
      assert.equal(source.status().state, 'failed')
      assert.equal(slack.calls.length, before + 1)
      await source.stop()
    }
  })

  it('asks nobody with a token of another kind, and shows no part of it', async () => {
    start({ token: { token: 'xoxb-12345-never-shown', name: 'SLACK_APP_TOKEN' } })
    const fault = await taker.untilTold()
    assert.equal(
      fault.message,
      'SLACK_APP_TOKEN is the token of a bot, not an app-level token (xapp-…)',
    )
    assert.equal(slack.calls.length, 0)
    assert.doesNotMatch(JSON.stringify(source.status()), /12345/)
  })

  it('ends when Socket Mode is switched off at Slack', async () => {
    start()
    await slack.untilOpen()
    slack.disconnect('link_disabled', false)
    await taker.untilTold()
    assert.match(source.status().problem?.detail ?? '', /switched off/)
    await slack.untilOpen(0)
  })

  it('refuses an address of a socket that is not encrypted and not here', async () => {
    slack.opens = [{ ok: true, url: 'ws://slack.example/link' }]
    start()
    while (!source.status().problem) await new Promise((resolve) => setTimeout(resolve, 2))
    assert.match(source.status().problem?.detail ?? '', /no address of a socket/)
  })

  it('says that another program has a socket of the app, once two greetings say so', async () => {
    const other = new Taker()
    const parts = { ...other.services, apiUrl: slack.url, token, pressed: () => Promise.resolve() }
    const second = new SlackSource(parts)
    second.start()
    await untilState(second, 'connected')
    start({ times: { recount: 10, overlap: 60_000 } })
    await slack.untilOpen(2)
    assert.equal(source.status().problem, undefined)
    while (!source.status().problem) await new Promise((resolve) => setTimeout(resolve, 2))
    assert.equal(source.status().problem?.code, 'source-shared')
    for (let each = 0; each < 6; each += 1)
      await slack.deliver(slackEvent(`Ev${each}`, { type: 'message' }))
    // Each event came to one of the two.
    assert.equal(taker.taken.length + other.taken.length, 6)
    assert.ok(other.taken.length > 0)
    await second.stop()
  })

  it('takes a message of 40,000 characters', async () => {
    start()
    const text = '😀&<'.repeat(10_000)
    await slack.deliver(slackEvent('Ev1', { type: 'app_mention', text }))
    const [payload] = taker.payloads() as { event?: { text?: string } }[]
    assert.equal(payload?.event?.text, text)
  })

  it('loses nothing and takes nothing twice in 24 hours of 50 sockets and a sleep, and its memory stays level', async function () {
    this.timeout(60_000)
    slack.patienceMs = 200
    const began = taker.nowMs
    await untilState(start({ times: { ping: 5, silent: 2 * hourMs, steady: 0 } }), 'connected')
    const ids: string[] = []
    let sent: Promise<number>[] = []
    let number = 0
    const send = (count: number) => {
      for (let each = 0; each < count; each += 1) {
        const ts = `${(number += 1)}.1`
        sent.push(slack.deliver(slackEvent(`Ev${number}`, { type: 'message', ts })))
      }
    }
    /** Nothing of the test is left but the ids: the rest is what the source remembers. */
    const measure = async (): Promise<number> => {
      await Promise.all(sent)
      sent = []
      ids.push(...taker.payloads().map((payload) => String(payload['event_id'])))
      taker.taken.length = 0
      slack.calls.length = 0
      await new Promise(setImmediate)
      collect()
      return process.memoryUsage().heapUsed
    }
    let atFirst = 0
    for (let round = 1; round <= 50; round += 1) {
      const { greeted } = slack
      send(20)
      if (round === 25) {
        slack.cutSilently()
        taker.nowMs += 8 * hourMs
        // What had arrived before the sleep is read after it, and counts as heard then.
        while (source.status().state === 'connected') {
          taker.nowMs += 3 * hourMs
          await new Promise(setImmediate)
        }
      } else if (round % 5 === 0) slack.terminateAll()
      else slack.disconnect('refresh_requested')
      send(20)
      await slack.untilGreeted(greeted + 1)
      await slack.untilOpen(1)
      taker.nowMs += hourMs / 3
      if (round === 10) atFirst = await measure()
    }
    const grown = (await measure()) - atFirst
    assert.equal(new Set(ids).size, 2000)
    // What was taken and could not be acknowledged came again: the pipeline knows it by its id.
    assert.ok(ids.length < 2400, String(ids.length))
    assert.ok(taker.nowMs - began >= 24 * hourMs)
    assert.equal(source.status().state, 'connected')
    assert.ok(slack.open <= 2)
    assert.ok(grown < 8 * 1024 * 1024, `${grown} bytes more after 40 sockets and 1,600 events`)
  })
})
