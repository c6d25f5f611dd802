import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { expandPrompt } from '../../../daemon/webhook/prompt.ts'
import { sanitize } from '../../../daemon/webhook/sanitize.ts'
import {
  toPlainTextWithColours,
  toPlainJson,
  toPlainLine,
  toPlainText,
} from '../../../shared/text.ts'
import { parsePrompt, parseTemplate } from '../../../shared/templates.ts'
import { scopeOf } from '../../support/scope.ts'
import { corpus, holds, textOf } from '../../support/fuzz/fuzz.ts'

const id = '0123456789abcdef'
const opening = `<<<EVENT_TEXT ${id}>>>`
const closing = `<<<END_EVENT_TEXT ${id}>>>`

const hostile = textOf([
  ...corpus('attacks').map((bytes) => bytes.toString()),
  opening,
  closing,
  '<',
  '<<<',
  '>>>',
  'END_',
  'EVENT',
  '_TEXT',
  'event text',
  '\u200b',
  '\u00ad',
  '\ufe0f',
  '\ud800',
  'е',
  'Ｅ',
  '＜',
  'e\u0301',
  '|',
  '<|',
  '|>',
  '<!--',
  '-->',
  '--',
  '!',
  '\n',
  '\r',
  '\u2028',
  '\u0085',
  'Human:',
  'system :',
  'assistant',
  ':',
  '[INST]',
  '[/',
  '</s>',
  '<s',
  'tool_call>',
  '\t',
  '\u001b[',
  '\u009b',
  '31m',
  '\u202e',
])

/** What a reader who drops accents, case and styles takes a text for. */
const folded = (text: string): string =>
  text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()

const assertHarmless = (text: string): void => {
  assert.doesNotMatch(
    text,
    /(?![\t\n]|\ufe0f)[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}]|(?<!\p{Emoji})\ufe0f/u,
    'invisible',
  )
  assert.doesNotMatch(
    folded(text),
    /[<([{][^\p{L}\p{N}]{0,8}(end)?[^\p{L}\p{N}]{0,8}event[^\p{L}\p{N}·]{0,8}text/u,
    'marker',
  )
  assert.doesNotMatch(text, /<[|\uff5c]|[|\uff5c]>/, 'a token of a chat template')
  assert.doesNotMatch(text, /\[\/?INST\]|<<\/?SYS>>|<\/?(s|user|system|tool_call)>/i, 'a turn')
  assert.doesNotMatch(text, /^[ \t]*(human|assistant|system)[ \t]*:/im, 'a speaker')
  assert.ok(!text.includes('<!--'), 'a hidden comment')
}

const count = (text: string, part: string): number => text.split(part).length - 1

describe('any text in a prompt', () => {
  holds(
    'is harmless once it is neutralised, and stays so when it is again',
    4000,
    fc.property(hostile, fc.boolean(), (text, isJson) => {
      const once = sanitize(text, isJson)
      assertHarmless(once)
      assertHarmless(sanitize(once, isJson))
    }),
  )

  holds(
    'stands between two markers that nothing in it can repeat, even where they are known',
    3000,
    fc.property(
      hostile,
      fc.oneof(hostile, fc.array(hostile), fc.dictionary(fc.string(), hostile)),
      fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
      (a, b, maxValueLength) => {
        const template = parseTemplate('read {{event.a}} and {{event.b}}')
        const style = { eventText: 'fenced', maxValueLength } as const
        const prompt = expandPrompt(template, scopeOf({ a, b }), style, id)
        const values = [a, b].filter((value) => value !== '').length
        const inNotice = values > 0 ? 1 : 0
        assert.equal(count(prompt, opening), values + inNotice)
        assert.equal(count(prompt, closing), values + inNotice)
        const inside = prompt.split(opening).slice(2)
        for (const part of inside) assertHarmless(part.split(closing)[0] ?? '')
      },
    ),
  )

  const liquid = parsePrompt(
    '{% capture both %}{{event.a}}{{event.b}}{% endcapture %}{% assign joined = event.list | join: "" %}' +
      '{{both}}{{joined}}{{event.a | append: event.b}}{{event.list | json}}{{event | json}}' +
      '{% for item in event.list %}{{item | strip}}{% endfor %}{{event.a | default: event.b | truncate: 50}}',
  )

  holds(
    'stands between such markers too after filters, captures and loops of a template',
    2000,
    fc.property(hostile, hostile, fc.array(hostile, { maxLength: 5 }), (a, b, list) => {
      const style = { eventText: 'fenced', maxValueLength: 4000 } as const
      const prompt = expandPrompt(liquid, scopeOf({ a, b, list }), style, id)
      const inside = prompt.split(opening).slice(2)
      assert.equal(count(prompt, closing), inside.length + 1)
      for (const part of inside) {
        const [text = '', after = ''] = part.split(closing)
        assertHarmless(text)
        assert.equal(after, '')
      }
    }),
  )
})

describe('any text on a terminal', () => {
  const harmful =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/
  holds(
    'has nothing left that a terminal obeys, and as JSON means the same',
    3000,
    fc.property(hostile, (text) => {
      assert.doesNotMatch(toPlainText(text), harmful)
      assert.doesNotMatch(toPlainLine(text), /[\n\t]/)
      assert.doesNotMatch(toPlainLine(text), harmful)
      assert.doesNotMatch(
        toPlainTextWithColours(`\u001b[31m${text}\u001b[0m`).replaceAll(
          /\u001b\[[0-9;]{0,20}m/g,
          '',
        ),
        harmful,
      )
      const json = toPlainJson(JSON.stringify({ [text]: text }))
      assert.doesNotMatch(json, harmful)
      assert.deepEqual(JSON.parse(json), { [text]: text })
    }),
  )
})
