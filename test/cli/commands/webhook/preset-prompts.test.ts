import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { readPrompt, webhookPresets } from '../../../../shared/recipes/presets.ts'
import { expandPrompt } from '../../../../daemon/webhook/prompt.ts'
import { parsePrompt } from '../../../../shared/templates.ts'
import { packageFolder } from '../../../../shared/version.ts'
import { startDaemon } from '../../../support/daemon/daemon.ts'
import { scopeOf } from '../../../support/scope.ts'
import { run } from '../../support/cli.ts'

const made = (name: string, event: unknown, headers = {}): string =>
  expandPrompt(
    parsePrompt(readPrompt(name)),
    scopeOf(event, { headers }),
    { eventText: 'plain', maxValueLength: undefined },
    '',
  )

const samples = new URL('assets/samples/', packageFolder)
const sample = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(new URL(`${name}.json`, samples), 'utf8'))

const list = (length: number, item: (index: number) => unknown): unknown[] =>
  Array.from({ length }, (_, index) => item(index))

describe('the prompt of a preset', () => {
  it('is there for each preset and recipe, and renders an event of which nothing is known', async () => {
    const files = await readdir(new URL('assets/prompts/', packageFolder))
    const names = [...Object.keys(webhookPresets), 'github-review']
    assert.deepEqual(files.toSorted(), names.map((name) => `${name}.liquid`).toSorted())
    for (const name of names) assert.match(made(name, {}), /\w/, name)
  })

  it('makes of a push of GitLab a line for each commit, and says how many are not in it', () => {
    const commits = list(20, (index) => ({
      id: `${index}`.padStart(40, 'a'),
      title: `title ${index}`,
      message: 'm'.repeat(2000),
      author: { name: 'Ann' },
    }))
    const push = { object_kind: 'push', user_name: 'Ann', ref: 'refs/heads/main', commits }
    const prompt = made('gitlab', { ...push, total_commits_count: 27 })
    for (let index = 0; index < 20; index += 1)
      assert.match(prompt, new RegExp(`^- aaaaaaaa title ${index} \\(Ann\\)$`, 'm'))
    assert.match(prompt, /^7 more are left out here\.$/m)
    assert.doesNotMatch(made('gitlab', { ...push, total_commits_count: 20 }), /left out/)
  })

  it('makes of a message of Pub/Sub its text, and of a list of SendGrid its lines', () => {
    const message = {
      data: Buffer.from('{"disk":"full"}').toString('base64'),
      attributes: { a: 'b' },
    }
    assert.match(
      made('google-pubsub', { message }),
      /attributes \{"a":"b"\}:\n\n\{"disk":"full"\}\n/,
    )
    const events = list(31, (index) => ({ event: 'bounce', email: `${index}@a.example` }))
    assert.match(
      made('sendgrid', events),
      /^- bounce 29@a\.example .*\n1 more are left out here\.$/m,
    )
    const mailgun = { 'event-data': { event: 'failed', recipient: 'a@b.example' } }
    assert.match(made('mailgun', mailgun), /^Mailgun says failed of a message to a@b\.example/)
  })

  it('makes of orders, alerts and issues what matters, within bounds', () => {
    const items = list(22, (index) => ({ quantity: 2, title: `thing ${index}`, price: '1.00' }))
    const order = made(
      'shopify',
      { name: '#1', line_items: items },
      {
        'x-shopify-topic': 'orders/paid',
      },
    )
    assert.match(order, /^Shopify says orders\/paid: order #1,/)
    assert.match(order, /2 x thing 19 .*\n2 more items are left out here\.$/m)
    const alerts = list(21, (index) => ({ status: 'firing', labels: { alertname: `A${index}` } }))
    assert.match(made('grafana', { status: 'firing', alerts }), /^Grafana: 21 alerts, firing\./)
    assert.match(made('alertmanager', { alerts }), /A19[^]*\n1 more are left out here\.$/m)
    const labels = [{ name: 'bug' }, { name: 'ui' }]
    const issue = made('linear', { type: 'Issue', data: { title: 'Broken', labels } })
    assert.match(issue, /Broken\n[^]*Assignee: no one\.\nLabels: bug, ui\n/)
    const frames = list(12, (index) => ({ function: `f${index}`, filename: 'a.py', lineno: index }))
    const values = [{ type: 'ValueError', value: 'bad', stacktrace: { frames } }]
    const error = made('sentry', { data: { error: { title: 'T', exception: { values } } } })
    assert.match(error, /ValueError: bad\n {2}at f11 in a\.py:11\n[^]*f2 .*\n {2}2 outer frames/)
  })

  it('makes of each built-in payload a prompt without an empty field', async () => {
    for (const file of await readdir(new URL('stripe/', samples))) {
      const prompt = made('stripe', await sample(`stripe/${file.replace('.json', '')}`))
      assert.match(
        prompt,
        /^Stripe says \S+ \(test mode\)\.\n\n\S+ \S+, status \S+\nAmount: \d+ usd/,
      )
      assert.ok(prompt.length < 600, prompt)
    }
    for (const name of ['github', 'gitea'])
      assert.doesNotMatch(made(name, await sample('github/pull_request.opened')), /: $|#( |$)/m)
    assert.match(made('slack', await sample('slack/app_mention')), /Hi there!/)
  })

  it('runs for the events that it is for, and for no other', async () => {
    const daemon = await startDaemon({ webhooks: 'webhooks: []\n' })
    try {
      const cli = (...args: string[]) => run(args, { home: daemon.home })
      const added = await cli('webhook', 'add', 'github', '--path', '/webhook/p')
      assert.equal(added.code, 0, added.stderr)
      const file = await readFile(`${daemon.home.config}/webhooks.yaml`, 'utf8')
      assert.match(file, /^ {4}on: \[pull_request\.opened, pull_request\.reopened\]$/m)
      const send = async (name: string) =>
        (await cli('webhook', 'send', '/webhook/p', '--sample', `github:${name}`)).stdout
      assert.match(await send('pull_request.opened'), /accepted/)
      for (const other of ['issues.opened', 'push', 'release.published'])
        assert.match(await send(other), /filtered/, other)
    } finally {
      await daemon.stop()
    }
  })

  it('gives way to a prompt, a filter or events of the user', async () => {
    const { home } = await startDaemon().then(async (daemon) => {
      await daemon.stop()
      return daemon
    })
    const printed = async (...args: string[]) =>
      (await run(['webhook', 'add', 'github', '--print', ...args], { home })).stdout
    assert.doesNotMatch(await printed('--prompt', 'x'), /^ *on:/m)
    assert.match(await printed('--filter', 'action=closed'), /^ *on: pull_request$/m)
    assert.match(await printed('--on', 'push', '--on', 'create'), /^ *on: \[push, create\]$/m)
  })

  it('makes of a list of changes of HubSpot a line for each, and of a message of Telegram its text', () => {
    const changes = list(22, (index) => ({ subscriptionType: 'contact.creation', objectId: index }))
    assert.match(made('hubspot', changes), /- contact\.creation of 19: .*\n2 more are left out/)
    const message = { from: { first_name: 'Ann' }, text: 'hello' }
    assert.match(made('telegram', { message }), /^Ann wrote this in Telegram:\n\nhello\n/)
    const sync = { 'x-goog-resource-state': 'exists', 'x-goog-resource-uri': 'https://x.example' }
    assert.match(made('google-calendar', sync), /^Google says exists of https:\/\/x\.example/)
  })
})
