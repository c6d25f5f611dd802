import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Webhook as SvixWebhook } from 'svix'
import type { EventDetail } from '../../../shared/api.ts'
import { presetSchemes } from '../../../shared/signatures/presets.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { randomFrom } from '../../support/fuzz/random.ts'
import { sendRaw } from '../../support/servers/raw.ts'
import {
  type Headers,
  pathOf,
  publicUrl,
  type Sender,
  senders,
} from '../../support/servers/senders.ts'

const requests = 10_000
const seed = Number(process.env['FUZZ_SEED'] ?? randomBytes(4).readUInt32BE())

const variableOf = (sender: Sender) => `SECRET_${senders.indexOf(sender)}`

/** A request as lines of text in Latin-1, and the bodies that its sender did sign. */
type Attack = {
  readonly sender: Sender
  readonly headers: [string, string][]
  readonly body: Buffer
}

describe(`${requests} requests of strangers (FUZZ_SEED=${seed})`, () => {
  let daemon: RunningDaemon
  const random = randomFrom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const oneOf = <Value>(values: readonly Value[]): Value => {
    const value = values[below(values.length)]
    assert.ok(value !== undefined)
    return value
  }
  const signatureNames = presetSchemes.flatMap(({ forms }) =>
    forms.flatMap(({ header, timestampHeader, idHeader }) =>
      [header, timestampHeader, idHeader].filter((name) => name !== undefined),
    ),
  )

  before(async () => {
    daemon = await startDaemon({
      gateway: `server: { public_url: ${publicUrl} }\n`,
      webhooks: `webhooks:${senders
        .map(
          (sender) =>
            `\n  - { path: ${pathOf(sender)}, agent: echo, signature_scheme: ${sender.scheme}, secret_env: ${variableOf(sender)}, prompt_template: "{{event}}" }`,
        )
        .join('')}\n`,
      variables: Object.fromEntries(
        senders.map((sender) => [variableOf(sender), secretOf(sender)] as const),
      ),
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  // Two that sign in one way must not share a secret, or what is signed for one is signed for both.
  const secrets = new Map<Sender, string>()
  for (const sender of senders) {
    const third = `whsec_${Buffer.from(`secret ${senders.indexOf(sender)} of the test`).toString('base64')}`
    const taken = new Set(secrets.values())
    const free = [sender.secret, sender.otherSecret, third].find((secret) => !taken.has(secret))
    secrets.set(sender, free ?? third)
  }
  const secretOf = (sender: Sender): string => secrets.get(sender) ?? ''

  /** A body of this sender that has not been there before. */
  const freshBody = (sender: Sender): string =>
    JSON.stringify({
      ...(JSON.parse(sender.bodyAt(Date.now())) as object),
      id: `evt_${randomBytes(12).toString('hex')}`,
      event_id: `Ev${randomBytes(12).toString('hex')}`,
    })

  const signed = async (sender: Sender): Promise<Attack> => {
    const body = freshBody(sender)
    const headers = await sender.sign(body, Date.now(), secretOf(sender))
    return { sender, headers: Object.entries(headers), body: Buffer.from(body) }
  }

  const noise = (size: number) =>
    Array.from({ length: size }, () => String.fromCharCode(below(256))).join('')
  const digits = (size: number) =>
    Array.from({ length: size }, () => below(16).toString(16)).join('')
  const madeUp = (): string =>
    oneOf([
      () => noise(below(100)),
      () => digits(64),
      () => `sha256=${digits(64)}`,
      () => `v0=${digits(64)}`,
      () => `t=${Math.floor(Date.now() / 1000)},v1=${digits(64)}`,
      () => `v1,${Buffer.from(digits(64), 'hex').toString('base64')}`,
      () => Buffer.from(digits(64), 'hex').toString('base64'),
      () => String(Math.floor(Date.now() / 1000)),
      () => String(below(2 ** 31)),
      () => '',
    ])()

  /** Changes bytes of a text somewhere. */
  const mutate = (text: string): string => {
    const at = below(text.length + 1)
    const size = below(random() < 0.8 ? 2 : 20) + 1
    const stretch = text.slice(at, at + size)
    return oneOf([
      () => text.slice(0, at) + noise(size) + text.slice(at + size),
      () => text.slice(0, at) + text.slice(at + size),
      () => text.slice(0, at) + stretch + text.slice(at),
      () => text.slice(0, at) + noise(1) + text.slice(at),
      () =>
        text.slice(0, at) +
        String.fromCharCode((stretch.charCodeAt(0) || 0) ^ (1 << below(8))) +
        text.slice(at + 1),
      () => text.toUpperCase(),
      () => `${text}, ${text}`,
    ])()
  }

  const attacks: readonly (() => Promise<Attack>)[] = [
    // All made up.
    async () => ({
      sender: oneOf(senders),
      headers: [
        ['content-type', 'application/json'],
        ...Array.from({ length: below(6) }, (): [string, string] => [
          oneOf(signatureNames),
          madeUp(),
        ]),
      ],
      body: Buffer.from(freshBody(oneOf(senders))),
    }),
    // Signed, with a header changed.
    async () => {
      const attack = await signed(oneOf(senders))
      const at = below(attack.headers.length)
      const headers = attack.headers.map(([name, value], index): [string, string] =>
        index === at ? [name, mutate(value)] : [name, value],
      )
      return { ...attack, headers }
    },
    // Signed, with the body changed.
    async () => {
      const attack = await signed(oneOf(senders))
      return { ...attack, body: Buffer.from(mutate(attack.body.toString('latin1')), 'latin1') }
    },
    // Signed for another webhook.
    async () => ({ ...(await signed(oneOf(senders))), sender: oneOf(senders) }),
    // Two requests in one: headers of one, body of the other, headers twice.
    async () => {
      const sender = oneOf(senders)
      const [one, two] = [await signed(sender), await signed(sender)]
      return {
        sender,
        headers: oneOf([one.headers, [...one.headers, ...two.headers]]),
        body: two.body,
      }
    },
    // Signed with another secret of the right shape.
    async () => {
      const sender = oneOf(senders)
      const body = freshBody(sender)
      const other = secretOf(sender) === sender.secret ? sender.otherSecret : sender.secret
      const headers: Headers = await sender.sign(body, Date.now(), other)
      return { sender, headers: Object.entries(headers), body: Buffer.from(body) }
    },
    // Signed an hour ago, or in an hour. Linear sends again for hours: more than a day ago.
    async () => {
      const sender = oneOf(
        // A token of GitLab has no time.
        senders.filter(
          ({ scheme }) =>
            scheme !== 'gitlab' &&
            presetSchemes.some(
              ({ name, toleranceSeconds }) => name === scheme && toleranceSeconds !== undefined,
            ),
        ),
      )
      const ago = sender.scheme === 'linear' ? -25 : -1
      const at = Date.now() + oneOf([ago, 1]) * 3_600_000
      const body = sender.scheme === 'linear' ? sender.bodyAt(at) : freshBody(sender)
      const headers = await sender.sign(body, at, secretOf(sender))
      return { sender, headers: Object.entries(headers), body: Buffer.from(body) }
    },
    // As it should be: the attack is worth nothing if nothing is ever accepted.
    async () => signed(oneOf(senders)),
  ]

  const wire = ({ sender, headers, body }: Attack): Buffer =>
    Buffer.concat([
      Buffer.from(
        [
          `POST ${pathOf(sender)} HTTP/1.1`,
          'Host: hooks.example.com',
          ...headers.map(([name, value]) => `${name}: ${value}`),
          `Content-Length: ${body.length}`,
          'Connection: close',
          '',
          '',
        ].join('\r\n'),
        'latin1',
      ),
      body,
    ])

  /** True when the webhook's own secret signed exactly this body, by the package of its sender. */
  const isSigned = async ({ sender, headers, body }: Attack): Promise<boolean> => {
    const given = Object.fromEntries(headers.map(([name, value]) => [name, value.trim()]))
    const secret = secretOf(sender)
    if (sender.proves) return sender.proves(given, body.toString('utf8'), secret)
    if (given['webhook-signature'] !== undefined || given['svix-signature'] !== undefined)
      try {
        new SvixWebhook(secret).verify(body.toString('utf8'), given)
        return true
      } catch {
        return false
      }
    const mine = await sender.sign(body.toString('utf8'), signedAt(given), secret)
    if (sender.scheme === 'token')
      return given['authorization']?.replace(/^bearer +/i, 'Bearer ') === mine['authorization']
    return presetSchemes.some(({ forms }) =>
      forms.some(({ header, check }) => {
        if (mine[header] === undefined || given[header] === undefined) return false
        return check === 'token'
          ? given[header] === mine[header]
          : // A described signature may have hex digits of either case.
            (sender.scheme === 'hmac' ? given[header].toLowerCase() : given[header]).includes(
              mine[header].replace(/^(t=\d+,|ts=\d+;)/, ''),
            )
      }),
    )
  }
  const signedAt = (given: Readonly<Record<string, string>>): number => {
    const text =
      /t=(\d+)/.exec(given['stripe-signature'] ?? '')?.[1] ??
      /ts=(\d+)/.exec(given['paddle-signature'] ?? '')?.[1] ??
      given['x-slack-request-timestamp'] ??
      ''
    return text === '' ? Date.now() : Number(text) * 1000
  }

  it('get nothing in that was not signed', async function () {
    this.timeout(180_000)
    const seen = new Map<string, number>()
    const accepted = new Map<string, number>()
    const attack = async (index: number) => {
      const kind = index % attacks.length
      const made = await attacks[kind]?.()
      assert.ok(made)
      const text = await sendRaw(daemon.url, wire(made))
      const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 'none'
      seen.set(status, (seen.get(status) ?? 0) + 1)
      assert.ok(!['500', 'none'].includes(status), `${status} to ${wire(made).toString('latin1')}`)
      if (status !== '202' && status !== '200') return
      accepted.set(String(kind), (accepted.get(String(kind)) ?? 0) + 1)
      const what = `FUZZ_SEED=${seed} request ${index} to ${made.sender.name}\n${wire(made).toString('latin1')}`
      assert.ok(await isSigned(made), `accepted, not signed: ${what}`)
      const [, id] = /"id":"(evt_\w+)"/.exec(text) ?? /^doorward-event: (\S+)/im.exec(text) ?? []
      const event = await daemon.client.get<EventDetail>(`/events/${id}`)
      if (event.prompt !== undefined)
        assert.equal(event.prompt, JSON.stringify(JSON.parse(made.body.toString('utf8'))), what)
    }
    for (let at = 0; at < requests; at += 20)
      await Promise.all(Array.from({ length: 20 }, (_, offset) => attack(at + offset)))

    const good = attacks.length - 1
    assert.equal(accepted.get(String(good)), requests / attacks.length)
    // Made up, another secret, another time: nothing of these may ever be taken.
    for (const kind of [0, 5, 6]) assert.equal(accepted.get(String(kind)) ?? 0, 0, `kind ${kind}`)
    assert.ok((seen.get('401') ?? 0) > requests / 2, JSON.stringify([...seen]))
  })
})
