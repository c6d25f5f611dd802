import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { loadEventPage } from '../../../daemon/event-page/page.ts'
import type { EventDetail } from '../../../shared/api/api.ts'
import { textOf } from '../../support/desktop/browser.ts'

const event: EventDetail = {
  id: 'evt_1',
  kind: 'webhook',
  webhook: '/hook',
  receivedAt: '2025-11-20T12:04:05.000Z',
  state: 'done',
  agent: 'echo',
  attempts: 1,
  durations: { queuedMs: 2, agentMs: 3200, deliverMs: 900 },
  targets: [],
}
const render = loadEventPage()
const renderPage = (
  changes: Partial<EventDetail>,
  more: { notice?: string; buttonPath?: string } = {},
) => render({ event: { ...event, ...changes }, ...more }, '/again').html

describe('the page of an event', () => {
  it('escapes every value', () => {
    const evil = `"><img src=x onerror=alert(1)></pre>'\`{{style}}`
    const html = renderPage(
      {
        id: evil,
        webhook: evil,
        state: 'failed',
        stage: 'deliver',
        code: evil,
        detail: evil,
        deliveryId: evil,
        agent: evil,
        prompt: evil,
        result: evil,
        targets: [{ target: evil, state: 'failed', attempts: 2, code: evil, detail: evil }],
      },
      { notice: evil, buttonPath: evil },
    )
    assert.doesNotMatch(html, /<img/)
    assert.equal(html.match(/<style>/g)?.length, 1)
    assert.equal(html.match(/<pre /g)?.length, html.match(/<\/pre>/g)?.length)
    assert.ok(html.match(/&#34;&#62;&#60;img src=x onerror=alert\(1\)&#62;/g)?.length)
  })

  it('is titled by what the event is about, and links to its page and to what was made', () => {
    const title = 'acme/shop#12 <Add> retries'
    const url = 'https://github.com/acme/shop/pull/12?a="b"&c'
    const html = renderPage({
      subject: { key: 'acme/shop#12', title, url, kind: 'pull request' },
      targets: [{ target: 'github:acme/shop#12', state: 'done', attempts: 1 }],
      links: [{ target: 'github:acme/shop#12', what: 'comment', url: 'https://github.com/c' }],
    })
    assert.match(html, /<title>acme\/shop#12 &#60;Add&#62; retries: done/)
    assert.match(
      html,
      /<h1><a href="https:\/\/github\.com\/acme\/shop\/pull\/12\?a=&#34;b&#34;&#38;c" rel="noopener noreferrer"/,
    )
    assert.match(html, /<a href="https:\/\/github\.com\/c"[^>]*><bdi>comment<\/bdi><\/a>/)
    assert.doesNotMatch(renderPage({}), /<a /)
    const targets = [{ target: 'file:a.md', state: 'done', attempts: 1 }] as const
    const links = ['file:///home/me/a.md', 'javascript:alert(1)', 'http://evil.example'].map(
      (page) => ({ target: 'file:a.md', what: 'file', url: page }),
    )
    const shown = renderPage({ targets: [...targets], links })
    assert.doesNotMatch(shown, /<a /)
    assert.match(textOf(shown), /file: file:\/\/\/home\/me\/a\.md/)
  })

  it('says what the agent had', () => {
    const shown = textOf(
      renderPage({
        promptSize: 300,
        context: [
          { name: 'diff', bytes: 200, leftOut: 'the diff is cut' },
          { name: 'files', bytes: 50, leftOut: null },
        ],
        sandbox: { kind: 'bwrap', network: 'model', refused: ['telemetry.example.com:443'] },
      }),
    )
    assert.match(shown, /300 bytes: diff 200 \(the diff is cut\), files 50/)
    assert.match(shown, /bwrap, network model, refused telemetry.example.com:443/)
    assert.match(textOf(renderPage({ sandbox: null })), /Sandbox\s*none/)
  })

  it('keeps the first line break of an answer, which HTML drops', () => {
    assert.ok(renderPage({ result: '\n\nb' }).includes('<pre dir="auto">\n\n\nb</pre>'))
    assert.match(textOf(renderPage({ result: '' })), /The answer is empty/)
  })

  it('has a button to run a failed event again, or to deliver its answer again', () => {
    const failed = { state: 'failed', stage: 'agent', code: 'agent-failed', prompt: 'x' } as const
    assert.match(
      renderPage(failed, { buttonPath: '/retry' }),
      /action="\/retry"><button>Run again</,
    )
    const undelivered = { ...failed, stage: 'deliver', result: 'x' } as const
    assert.match(renderPage(undelivered, { buttonPath: '/retry' }), /<button>Deliver again</)
    const { prompt: _prompt, ...forgotten } = failed
    assert.match(textOf(renderPage(forgotten)), /no longer in memory/)
    assert.doesNotMatch(renderPage(forgotten), /<form/)
  })

  it('shows a target as waiting only until the event is final', () => {
    const targets = [{ target: 'log', state: 'waiting', attempts: 0 }] as const
    const shown = (state: EventDetail['state']) =>
      textOf(renderPage({ state, targets: [...targets] }))
    assert.match(shown('running'), /log waiting/)
    assert.match(shown('failed'), /log not reached/)
  })

  it('shows no stages for events of accounts', () => {
    const html = renderPage({
      kind: 'oauth',
      webhook: null,
      agent: null,
      detail: 'github: logged in',
    })
    assert.match(textOf(html), /Accounts[^]*github: logged in/)
    assert.doesNotMatch(html, /class="stages"/)
    assert.match(html, /<title>oauth: done · Doorward<\/title>/)
  })

  it('shows the preview of a forgotten answer', () => {
    assert.match(
      textOf(renderPage({ resultPreview: 'the beginning' })),
      /the beginning[^]*Only the/,
    )
  })
})
