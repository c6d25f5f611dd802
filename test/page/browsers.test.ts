import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'mocha'
import { Browsers } from '../../daemon/page/browsers.ts'
import { whyNoPerson } from '../../daemon/page/person.ts'
import { loggedPath } from '../../daemon/page/page.ts'

describe('browsers of the page', () => {
  it('come in by a link that works once, for five minutes, and stay for a week without use', () => {
    let now = 0
    const browsers = new Browsers(() => now)
    const [{ code }, late] = [browsers.issueLink('/ui/usage'), browsers.issueLink('/')]
    now = 299_999
    assert.equal(browsers.isUnused(code), true)
    const opened = browsers.open(code)
    assert.equal(opened?.to, '/ui/usage')
    assert.equal(browsers.open(code), undefined)
    now = 300_000
    assert.equal(browsers.open(late.code), undefined)
    for (const day of [6, 12]) {
      now = day * 86_400_000
      assert.ok(browsers.find(opened?.key), String(day))
    }
    now += 7 * 86_400_000 + 1
    assert.equal(browsers.find(opened?.key), undefined)
  })
})

const origin = 'http://127.0.0.1:18789'
const page = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-user': '?1' }
const own = { ...page, 'sec-fetch-site': 'same-origin' }

describe('a request for the page', () => {
  const table: readonly (readonly [string, string, IncomingHttpHeaders, string | undefined])[] = [
    ['a typed address', 'GET', { ...page, 'sec-fetch-site': 'none' }, undefined],
    ['a reload, and a redirect after a form', 'GET', own, undefined],
    ['a script of the page', 'GET', { ...own, 'sec-fetch-dest': 'empty' }, undefined],
    ['a browser without these headers', 'GET', {}, undefined],
    ['our own form', 'POST', { ...own, origin }, undefined],
    ['our own form in an old browser', 'POST', { origin }, undefined],
    ['a form without an origin', 'POST', {}, 'other-site'],
    ['a form with a hidden origin', 'POST', { origin: 'null' }, 'other-site'],
    ['a form of a script', 'POST', { ...own, origin, 'sec-fetch-dest': 'empty' }, 'embedded'],
    ['a link of another site', 'GET', { ...page, 'sec-fetch-site': 'cross-site' }, 'other-site'],
    ['a link of another port', 'GET', { ...page, 'sec-fetch-site': 'same-site' }, 'other-site'],
    ['a script of another site', 'GET', { origin: 'https://evil.example' }, 'other-site'],
    ['a frame', 'GET', { ...own, 'sec-fetch-dest': 'iframe' }, 'embedded'],
    ['a page loaded early', 'GET', { ...page, 'sec-purpose': 'prefetch;prerender' }, 'prefetch'],
    ['a preview picture of a page', 'GET', { 'x-purpose': 'preview' }, 'prefetch'],
  ]
  for (const [what, method, headers, expected] of table)
    it(`recognises ${what}`, () => assert.equal(whyNoPerson(method, headers, origin), expected))

  it('has a code that is never logged', () => {
    assert.equal(loggedPath(`/ui/link/${'x'.repeat(43)}`), '/ui/link/…')
    assert.equal(loggedPath('/ui/events/evt_1'), '/ui/events/evt_1')
  })
})
