import assert from 'node:assert/strict'
import { isAbsolute, join, normalize } from 'node:path'
import * as fc from 'fast-check'
import { expandTargets } from '../../../daemon/webhook/targets.ts'
import { composeMail } from '../../../daemon/delivery/targets/smtp.ts'
import { parseTarget } from '../../../shared/targets/targets.ts'
import { makeReply } from '../../support/servers/deliver.ts'
import { corpus, holds, textOf } from '../../support/fuzz/fuzz.ts'
import { scopeOf } from '../../support/scope.ts'

const value = textOf([
  ...corpus('attacks').map((bytes) => bytes.toString()),
  '..',
  '.',
  '/',
  '\\',
  '~',
  'C:',
  '\0',
  '\r\n',
  'Bcc: eve@example.com',
  ',',
  ';',
  ' ',
  '@',
  '#',
  '%2e',
  '%0a',
  'acme',
  'door',
  '7',
  '\u202e',
  '"',
  '<',
  '>',
])

/** What each kind of target may become, whatever an event holds. */
const templates = {
  'slack:#{{event.a}}': /^#[^\s\p{C}<>@!,&/]{1,80}$/u,
  // A chat that an event names may be one of its topics.
  'telegram:@{{event.a}}': /^@[A-Za-z]\w{3,31}(\/\d+)?$/,
  'telegram:{{event.a}}': /^(-?\d{1,19}|@\w+)(\/\d+)?$/,
  'discord:{{event.a}}': /^[\w.-]{1,64}$/,
  'email:{{event.a}}@example.com': /^[^\s\p{C}@,;<>()"\\:]+@example\.com$/u,
  'slack:{{event.a}}/{{event.b}}':
    /^(#[^\s\p{C}<>@!,&/]{1,80}|[CDGUW][A-Z0-9]+)\/\d{9,11}\.\d{6}$/u,
  'gitlab:{{event.a}}/{{event.b}}!{{event.c}}': /^[\w.-]+(\/(?!\.+[/!])[\w.-]+)+!\d+$/,
  'gitlab-review:{{event.a}}!{{event.b}}': /^[\w.-]+(\/(?!\.+[/!])[\w.-]+)+!\d+$/,
  'github:{{event.a}}/{{event.b}}#{{event.c}}': /^[\w-]+\/(?!\.\.?#)[\w.-]+#\d+$/,
  'github-review:{{event.a}}#{{event.b}}': /^[\w-]+\/(?!\.\.?#)[\w.-]+#\d+$/,
  'github-check:{{event.a}}@{{event.b}}': /^[\w-]+\/(?!\.\.?@)[\w.-]+@[0-9a-f]{40,64}$/,
  'pull-request:{{event.a}}@{{event.b}}': /^[\w-]+\/(?!\.\.?@)[\w.-]+@\w(?!.*\.\.)[\w./#+-]*$/,
} as const

describe('any value in the name of a target', () => {
  for (const [template, form] of Object.entries(templates))
    holds(
      `makes of ${template} a name of its kind, or nothing`,
      1500,
      fc.property(value, value, value, (a, b, c) => {
        const [target] = expandTargets([parseTarget(template)], scopeOf({ a, b, c }))
        assert.ok(target)
        if (target.kind === 'invalid') return
        assert.ok('address' in target)
        assert.match(target.address, form)
      }),
    )

  holds(
    'leads a file nowhere but into its folder, under a name of one part',
    3000,
    fc.property(value, value, (a, b) => {
      const file = parseTarget('file:notes/{{event.a}}-{{event.b}}.md')
      const [target] = expandTargets([file], scopeOf({ a, b }))
      assert.ok(target)
      if (target.kind === 'invalid') return
      assert.ok(target.kind === 'file')
      assert.ok(!isAbsolute(target.path))
      const parts = normalize(join('/home/x', target.path)).split('/')
      assert.deepEqual(parts.slice(0, 4), ['', 'home', 'x', 'notes'])
      assert.equal(parts.length, 5)
      assert.doesNotMatch(target.path, /[\p{Cc}\\\u202e]/u)
    }),
  )
})

describe('any answer as a mail', () => {
  const headers = async (text: string) => {
    const message = {
      address: 'jane@example.com',
      text,
      part: 1,
      isLast: true,
      reply: makeReply(text),
    }
    const { bytes, envelope } = await composeMail(message, 'Doorward <me@example.com>')
    const [head = ''] = bytes.toString('latin1').split('\r\n\r\n')
    const names = head.replaceAll(/\r\n[ \t]/g, ' ').split('\r\n')
    return { envelope, names: names.map((line) => line.split(':', 1)[0]) }
  }
  holds(
    'has the same headers and the same one recipient',
    400,
    fc.asyncProperty(value, async (text) => {
      const usual = await headers('an answer')
      const made = await headers(text)
      assert.deepEqual(made.envelope, { from: 'me@example.com', to: ['jane@example.com'] })
      // How the body is written depends on its characters.
      const kept = (names: readonly (string | undefined)[]) =>
        names.filter((name) => name !== 'Content-Transfer-Encoding')
      assert.deepEqual(kept(made.names), kept(usual.names))
    }),
  )
})
