import assert from 'node:assert/strict'
import { App, LogLevel } from '@slack/bolt'
import { SocketModeClient } from '@slack/socket-mode'
import { slackEvent, SlackServer } from '../../support/servers/slack-server.ts'

/* The stand-in for Slack behaves so that Slack's own clients work with it. */

describe('the stand-in for Slack', () => {
  let slack: SlackServer

  beforeEach(async () => {
    slack = await SlackServer.start()
  })

  afterEach(async () => slack.close())

  it('serves the official client of Socket Mode, which acknowledges each kind of envelope', async () => {
    const client = new SocketModeClient({
      appToken: 'xapp-1-A0APP-1-abc',
      logLevel: LogLevel.ERROR,
      clientOptions: { slackApiUrl: `${slack.url}/` },
    })
    const seen: string[] = []
    client.on('slack_event', ({ ack, type }: { ack: () => Promise<void>; type: string }) => {
      seen.push(type)
      void ack()
    })
    await client.start()
    await slack.deliver(slackEvent('Ev1', { type: 'app_mention', text: 'hello' }))
    await slack.deliver({ type: 'slash_commands', payload: { command: '/ask', text: 'x' } })
    await slack.deliver({ type: 'interactive', payload: { type: 'block_actions', actions: [] } })
    assert.deepEqual(seen, ['events_api', 'slash_commands', 'interactive'])
    assert.deepEqual(slack.acknowledged, ['envelope-1', 'envelope-2', 'envelope-3'])
    await client.disconnect()
    await slack.untilOpen(0)
  })

  it('serves an app of Bolt, which answers a mention in its thread', async () => {
    const app = new App({
      token: 'xoxb-1',
      appToken: 'xapp-1-A0APP-1-abc',
      socketMode: true,
      logLevel: LogLevel.ERROR,
      clientOptions: { slackApiUrl: `${slack.url}/` },
    })
    app.event('app_mention', async ({ event, say }) => {
      await say({ text: `you said ${event.text}`, thread_ts: event.ts })
    })
    await app.start()
    const [, call] = await Promise.all([
      slack.deliver(slackEvent('Ev2', { type: 'app_mention', text: 'hello' })),
      slack.untilCalled('chat.postMessage'),
    ])
    assert.equal(call.body['thread_ts'], '1795000000.000100')
    await app.stop()
    await slack.untilOpen(0)
  })

  it('makes the official client open a second socket when the first one ends', async () => {
    const client = new SocketModeClient({
      appToken: 'xapp-1-A0APP-1-abc',
      logLevel: LogLevel.ERROR,
      clientOptions: { slackApiUrl: `${slack.url}/` },
    })
    await client.start()
    const again = new Promise((resolve) => client.once('connected', resolve))
    slack.disconnect('warning', false)
    await again
    assert.equal(slack.countCalls('apps.connections.open'), 2)
    await client.disconnect()
  })
})
