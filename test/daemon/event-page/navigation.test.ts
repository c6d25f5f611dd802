import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'mocha'
import { whyNotAPerson } from '../../../daemon/event-page/error-pages.ts'
import { codeIn, loggedPath, pagePath } from '../../../daemon/event-page/routes.ts'

const origin = 'http://127.0.0.1:18789'
const page = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-user': '?1' }

describe('a request for the page of an event', () => {
  const table: readonly (readonly [string, string, IncomingHttpHeaders, string | undefined])[] = [
    [
      'an address that is typed or opened by a program',
      'GET',
      { ...page, 'sec-fetch-site': 'none' },
      undefined,
    ],
    [
      'a reload, and a redirect after a form',
      'GET',
      { ...page, 'sec-fetch-site': 'same-origin' },
      undefined,
    ],
    ['a browser without these headers', 'GET', {}, undefined],
    ['our own form', 'POST', { ...page, origin, 'sec-fetch-site': 'same-origin' }, undefined],
    ['our own form in an old browser', 'POST', { origin }, undefined],
    ['a form without an origin', 'POST', {}, 'other-site'],
    ['a form with a hidden origin', 'POST', { origin: 'null' }, 'other-site'],
    ['a link of another site', 'GET', { ...page, 'sec-fetch-site': 'cross-site' }, 'other-site'],
    ['a link of another port', 'GET', { ...page, 'sec-fetch-site': 'same-site' }, 'other-site'],
    ['a script of another site', 'GET', { origin: 'https://evil.example' }, 'other-site'],
    ['a frame', 'GET', { 'sec-fetch-dest': 'iframe' }, 'embedded'],
    ['a script', 'GET', { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }, 'embedded'],
    ['a page loaded early', 'GET', { ...page, 'sec-purpose': 'prefetch;prerender' }, 'prefetch'],
    ['a preview picture of a page', 'GET', { 'x-purpose': 'preview' }, 'prefetch'],
  ]
  for (const [what, method, headers, expected] of table)
    it(`recognises ${what}`, () => assert.equal(whyNotAPerson(method, headers, origin), expected))
})

describe('the path of a page', () => {
  it('has a code, which is never logged', () => {
    const code = 'a-_'.padEnd(43, 'x')
    assert.equal(codeIn(pagePath(code)), code)
    for (const path of [
      `${pagePath(code)}x`,
      `${pagePath(code)}/`,
      '/events/view/',
      `/x${pagePath(code)}`,
    ])
      assert.equal(codeIn(path), undefined)
    assert.equal(loggedPath(pagePath(code)), '/events/view/…')
    assert.equal(loggedPath(`${pagePath(code)}/x`), '/events/view/…')
    assert.equal(loggedPath('/events/evt_1'), '/events/evt_1')
  })
})
