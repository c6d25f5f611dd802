import assert from 'node:assert/strict'
import type { SMTPServerOptions } from 'smtp-server'
import { DeliveryError } from '../../../../daemon/delivery/delivery-error.ts'
import { sendBySmtp } from '../../../../daemon/delivery/targets/smtp.ts'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import { startMailServer } from '../../../support/servers/mail-server.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

/** Header fields by their name in lower case, unfolded; the body under ''. */
const parsed = (mail: string): Record<string, string> => {
  const [head = '', ...body] = mail.split('\r\n\r\n')
  const fields = head
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .map((line) => [line.split(':', 1)[0]?.toLowerCase() ?? '', line.replace(/^[^:]*:\s*/, '')])
  return { ...Object.fromEntries(fields), '': body.join('\r\n\r\n') }
}

/** Text in quoted-printable (RFC 2045 section 6.7). */
const unquoted = (text: string): string =>
  decodeURIComponent(
    text
      .replaceAll('=\r\n', '')
      .replaceAll('%', '=25')
      .replaceAll(/=([0-9A-F]{2})/g, '%$1'),
  )

describe('delivery by mail over SMTP', () => {
  let server: Awaited<ReturnType<typeof startMailServer>>
  let shown: readonly string[]
  beforeEach(async () => {
    server = await startMailServer()
  })
  afterEach(() => server.close())

  const run = async (
    text = 'an answer',
    url = `smtp://me%40example.com:a%20pass%40word@127.0.0.1:${server.port}`,
    target = 'email:jane@example.com',
    signal = new AbortController().signal,
  ) => {
    const { deliver, preview } = deliverWith(
      { email: { smtp_url_env: 'SMTP', from: 'Doorward <me@example.com>' } },
      { env: { SMTP: url }, rules },
    )
    const targets = resolveTargets([target])
    shown = await Promise.all(targets.map(async (one) => preview(one, makeReply(text))))
    const [result] = await deliver(targets, makeReply(text), { signal })
    return result
  }
  const rules = {
    retries: 2,
    firstWaitMs: 5,
    maxWaitMs: 10,
    totalMs: 10_000,
    attemptMs: 500,
    mailTimeoutMs: 2000,
  }

  it('sends plain text, marked as written by a program, after a login', async () => {
    const result = await run('# Done\n\nIt is **é😀**.\r\n.\n\u001b[31mred')
    assert.deepEqual(result, { target: 'email:jane@example.com', state: 'done', attempts: 1 })
    const [mail] = server.mails
    assert.deepEqual(
      [mail?.from, mail?.to, mail?.user],
      ['me@example.com', ['jane@example.com'], 'me@example.com'],
    )
    const fields = parsed(mail?.text ?? '')
    assert.equal(fields['from'], 'Doorward <me@example.com>')
    assert.equal(fields['to'], 'jane@example.com')
    assert.equal(fields['subject'], '/github: Done')
    const body = unquoted(fields[''] ?? '').replaceAll('\r\n', '\n')
    assert.deepEqual(
      shown.map((text) => text.trimEnd()),
      [`To: ${fields['to']}\nSubject: ${fields['subject']}\n\n${body}`.trimEnd()],
    )
    assert.equal(fields['auto-submitted'], 'auto-generated')
    assert.match(fields['content-type'] ?? '', /^text\/plain; charset=utf-8/)
    assert.match(
      fields['message-id'] ?? '',
      /^<evt_0123456789abcdef01\.[0-9a-f]{16}@example\.com>$/,
    )
    assert.equal(fields['content-transfer-encoding'], 'quoted-printable')
    assert.equal(
      unquoted(fields[''] ?? '')
        .replaceAll('\r\n', '\n')
        .trimEnd(),
      '# Done\n\nIt is **é😀**.\n.\nred\n\n-- \n/github · 2026-01-01T00:00:00.000Z · evt_0123456789abcdef01',
    )
  })

  it('makes no header of an answer, and no second recipient', async () => {
    await run('Hello\r\nBcc: eve@example.com\r\n\r\nx')
    await run('a\u2028Bcc: eve@example.com')
    for (const { text, to } of server.mails) {
      assert.deepEqual(to, ['jane@example.com'])
      assert.equal(parsed(text)['bcc'], undefined)
    }
  })

  it('writes a host name of other letters as the mail system has it', async () => {
    await run('x', undefined, 'email:jane@bücher.example')
    // The server shows the address as people do; the mail itself has it as it went over the wire.
    assert.deepEqual(server.mails[0]?.to, ['jane@bücher.example'])
    assert.equal(parsed(server.mails[0]?.text ?? '')['to'], 'jane@xn--bcher-kva.example')
  })

  it('cuts a long first line for the subject, not in the middle of a character', async () => {
    for (const before of ['', 'a']) await run(before + '😀'.repeat(500))
    for (const { text } of server.mails) assert.doesNotMatch(text, /=EF=BF=BD/)
  })

  it('keeps its Message-ID when it is sent again', async () => {
    server.next(451, 452)
    const result = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 3])
    const ids = server.mails.map(({ text }) => parsed(text)['message-id'])
    assert.deepEqual([ids.length, new Set(ids).size], [3, 1])
  })

  it('waits for a server that takes its time with the text, longer than for anything else', async () => {
    server.next({ takeAfterMs: 2 * rules.attemptMs })
    const result = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 1])
    assert.equal(server.mails.length, 1)
  })

  for (const answer of ['hang', 'reset'] as const)
    it(`sends nothing again that may have arrived, and says so: ${answer}`, async () => {
      server.next(answer)
      const result = await run()
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(
        result?.detail ?? '',
        /did not confirm the mail; outcome unknown: it may have arrived$/,
      )
      assert.equal(server.mails.length, 1)
    })

  it('does not wait for that when the daemon stops', async () => {
    const stop = new AbortController()
    server.close()
    server = await startMailServer({
      onData: (stream) => {
        stream.resume()
        stream.once('end', () => stop.abort())
      },
    })
    const started = performance.now()
    const result = await run('x', undefined, undefined, stop.signal)
    assert.ok(performance.now() - started < rules.mailTimeoutMs)
    assert.match(
      result?.detail ?? '',
      /before the daemon stopped; outcome unknown: it may have arrived$/,
    )
  })

  it('is tried again with a server that is silent before it has the text', async () => {
    server.close()
    server = await startMailServer({ onRcptTo: () => undefined })
    const result = await run()
    assert.deepEqual([result?.state, result?.attempts], ['failed', 3])
    assert.match(result?.detail ?? '', /cannot be reached \(ETIMEDOUT\) \(check/)
  })

  it('fails at once for 550, without the words of the server', async () => {
    server.next(550)
    const result = await run()
    assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
    assert.match(result?.detail ?? '', /^the mail server refused the mail \(550\) \(check/)
  })

  it('fails at once for a login that is refused, and shows no password', async () => {
    const result = await run('x', `smtp://me:canary@127.0.0.1:${server.port}`)
    assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
    assert.match(result?.detail ?? '', /refused the login \(535\).*app password/)
    assert.doesNotMatch(result?.detail ?? '', /canary/)
  })

  it('fails at once for a recipient that is refused', async () => {
    server.close()
    server = await startMailServer({
      onRcptTo: (_address, _session, done) =>
        done(Object.assign(new Error('no jane@example.com'), { responseCode: 550 })),
    })
    const result = await run()
    assert.match(result?.detail ?? '', /refused the mail \(550\)/)
    assert.doesNotMatch(result?.detail ?? '', /jane/)
  })

  it('is tried again while nothing listens', async () => {
    const url = `smtp://127.0.0.1:${server.port}`
    server.close()
    const result = await run('x', url)
    assert.deepEqual([result?.state, result?.attempts], ['failed', 3])
    assert.match(result?.detail ?? '', /cannot be reached/)
  })

  const elsewhere: [string, boolean, SMTPServerOptions, RegExp][] = [
    [
      'by TLS',
      true,
      { secure: true },
      /^the certificate of the mail server has expired \([A-Z_]+\)$/,
    ],
    [
      'by STARTTLS',
      false,
      { disabledCommands: [] },
      /^the certificate of the mail server has expired/,
    ],
    ['without TLS', false, {}, /^the mail server does not support TLS on this port$/],
  ]
  for (const [how, isTls, options, said] of elsewhere)
    it(`sends nothing to a server elsewhere that cannot be trusted, ${how}, and does not try again`, async () => {
      server.close()
      server = await startMailServer(options)
      const mail = {
        envelope: { from: 'me@example.com', to: ['jane@example.com'] },
        messageId: '<1@example.com>',
        bytes: Buffer.from('Subject: x\r\n\r\nx\r\n'),
      }
      const { signal } = new AbortController()
      const attempt = { signal, timeoutMs: 2000, mailTimeoutMs: 2000, mayHaveArrived: false }
      // On loopback, where any certificate is taken, but for this word.
      const place = { host: '127.0.0.1', port: server.port, isTls, isLoopback: false }
      const login = { user: 'me', password: 'a pass@word' }
      await assert.rejects(sendBySmtp(mail, { ...place, login }, attempt), (error: unknown) => {
        assert.ok(error instanceof DeliveryError)
        assert.equal(error.retryability, 'permanent')
        assert.match(error.message, said)
        return true
      })
      await server.left()
      assert.deepEqual(server.mails, [])
    })

  it('fails at once where smtps:// names a server that has no TLS', async () => {
    const result = await run('x', `smtps://127.0.0.1:${server.port}`)
    assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
    assert.match(
      result?.detail ?? '',
      /^the mail server does not support TLS on this port \(use smtps:/,
    )
    assert.deepEqual(server.mails, [])
  })

  it('uses STARTTLS where a server on this machine has it', async () => {
    server.close()
    server = await startMailServer({ disabledCommands: [] })
    assert.equal((await run())?.state, 'done')
    assert.equal(server.mails[0]?.isEncrypted, true)
  })

  it('sends nothing without the URL of a mail server', async () => {
    for (const url of ['', 'hello', 'https://a.b', 'smtp://a.b/path', 'smtp://a:%zz@b'])
      assert.match((await run('x', url))?.detail ?? '', /^SMTP/)
  })
})

describe('delivery by mail over Gmail', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(json(200, { id: '1' }))
  })
  afterEach(() => server.close())

  const run = async () => {
    const test = deliverWith(
      { email: { api_url: server.origin } },
      { tokens: { google: ['ya29.first', 'ya29.second'] } },
    )
    const [result] = await test.deliver(resolveTargets(['email:jane@example.com']), makeReply())
    return { result, ...test }
  }
  const mailOf = (place: number) =>
    parsed(Buffer.from(String(server.requests[place]?.fields['raw']), 'base64url').toString())

  it('sends the mail as the account of the login', async () => {
    const { result } = await run()
    assert.equal(result?.state, 'done')
    const [request] = server.requests
    assert.equal(request?.path, '/gmail/v1/users/me/messages/send')
    assert.equal(request.headers.authorization, 'Bearer ya29.first')
    assert.deepEqual(
      [mailOf(0)['to'], mailOf(0)['subject'], mailOf(0)['from']],
      ['jane@example.com', '/github: an answer', undefined],
    )
  })

  it('looks for the mail before it sends it again', async () => {
    server.next(reset, json(200, { messages: [{ id: '1' }] }))
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    const id = mailOf(0)['message-id'] ?? ''
    const query = new URL(server.requests[1]?.path ?? '', server.origin).searchParams
    assert.equal(query.get('q'), `rfc822msgid:${id.slice(1, -1)}`)
    server.requests.length = 0
    server.next(reset, json(200, { resultSizeEstimate: 0 }))
    assert.equal((await run()).result?.state, 'done')
    assert.equal(mailOf(2)['message-id'], id)
  })

  it('sends nothing again while it is not told what is there', async () => {
    server.next(reset, json(200, {}), json(200, { messages: [{ id: '1' }] }))
    const { result } = await run()
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 3, 'an earlier attempt had arrived'],
    )
  })

  it('looks for it after a 5xx too, and not after 429', async () => {
    server.next(json(502, {}), json(200, { messages: [{ id: '1' }] }))
    assert.equal((await run()).result?.detail, 'an earlier attempt had arrived')
    server.requests.length = 0
    server.next(json(429, {}))
    assert.equal((await run()).result?.state, 'done')
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['POST', 'POST'],
    )
  })

  it('tells a limit from a scope that is missing, and renews a token once', async () => {
    const reason = (name: string) => ({ error: { code: 403, errors: [{ reason: name }] } })
    server.next(json(403, reason('userRateLimitExceeded')), json(401, {}))
    const { result, asked } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    assert.deepEqual(
      asked.map(({ renewed }) => renewed),
      [false, false, true],
    )
    server.next(json(403, reason('insufficientPermissions')))
    assert.match((await run()).result?.detail ?? '', /lacks the scope gmail\.modify/)
    for (const status of [403, 429]) {
      server.next(json(status, reason('dailyLimitExceeded')))
      const { result } = await run()
      assert.equal(result?.attempts, 1)
      assert.match(result?.detail ?? '', /daily limit reached.*again tomorrow/)
    }
  })
})
