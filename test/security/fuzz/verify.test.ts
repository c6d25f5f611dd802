import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { computeMac, type SignatureForm } from '../../../shared/signatures/form.ts'
import { keyBytes } from '../../../shared/signatures/secrets.ts'
import { distinct, refusalOf, schemeNamed } from '../../support/daemon/accepts.ts'
import { bytesLike, corpus, holds } from '../../support/fuzz/fuzz.ts'
import { type Headers, type Sender, senders } from '../../support/servers/senders.ts'

/** Bodies of the sender with any text in them, and bodies that are no JSON where none is asked for. */
const bodyOf = (sender: Sender, nowMs: number): fc.Arbitrary<string> => {
  const made = fc
    .string({ unit: 'binary', maxLength: 60 })
    .map((text) => JSON.stringify({ ...(JSON.parse(sender.bodyAt(nowMs)) as object), text }))
  const { bodyTimestamp, forms } = schemeNamed(sender.scheme)
  if (bodyTimestamp !== undefined) return made
  // Then the body is JSON, whose end could be no part of what follows.
  if (forms.some(({ signs }) => signs.at(-1) !== '{body}')) return made
  const texts = corpus('payloads').map((bytes) => bytes.toString())
  return fc.oneof(
    made,
    fc.constantFrom(...texts),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
  )
}

/** The form that counts for these headers. */
const formOf = ({ scheme, secret }: Sender, headers: Headers): SignatureForm => {
  const isToken = !secret.startsWith('whsec_')
  const { forms } = schemeNamed(scheme)
  const form = forms.find(
    ({ header, check }) => headers[header] !== undefined && (check === 'mac' || isToken),
  )
  assert.ok(form)
  return form
}

/** Every header with one bit of it changed, where the form looks at it. */
const changedHeaders = (form: SignatureForm, headers: Headers): Headers[] =>
  [form.header, form.timestampHeader, form.idHeader]
    .filter((name) => name !== undefined)
    .flatMap((name) => {
      const value = headers[name] ?? ''
      return value.split('').flatMap((_, place) =>
        Array.from({ length: 8 }, (__, bit) => ({
          ...headers,
          [name]:
            value.slice(0, place) +
            String.fromCharCode(value.charCodeAt(place) ^ (1 << bit)) +
            value.slice(place + 1),
        })),
      )
    })

const nowMs = Date.now()

describe('a signature of any body', () => {
  for (const sender of senders) {
    const refusal = (headers: Headers, body: Buffer, secrets = [sender.secret]) =>
      refusalOf(sender.scheme, secrets, distinct(headers), body, nowMs)

    holds(
      `by ${sender.name} is accepted, and refused after a change of any one bit`,
      4,
      fc.asyncProperty(bodyOf(sender, nowMs), async (text) => {
        const headers = await sender.sign(text, nowMs)
        const body = Buffer.from(text)
        assert.equal(refusal(headers, body), undefined)
        assert.equal(refusal(headers, body, [sender.otherSecret, sender.secret]), undefined)
        assert.notEqual(refusal(headers, body, [sender.otherSecret]), undefined)
        const form = formOf(sender, headers)
        // A described signature may have hex digits of either case, as the words Bearer and Basic may; of
        // Basic the password counts.
        const asOne = ({ [form.header]: value = '' }: Headers) => {
          if (form.anyCase) return value.toLowerCase()
          const [word = '', ...rest] = value.split(' ')
          const text = rest.join(' ')
          const pair = Buffer.from(text, 'base64').toString('latin1')
          return `${word.toLowerCase()} ${form.in === 'basic' ? pair.replace(/^[^:]*:/, '') : text}`
        }
        const isSame = (changed: Headers) =>
          (form.anyCase ?? form.in !== undefined) && asOne(changed) === asOne(headers)
        for (const changed of changedHeaders(form, headers).filter((each) => !isSame(each)))
          assert.notEqual(refusal(changed, body), undefined, JSON.stringify(changed))
        // A token says nothing of the body.
        if (form.check === 'token') return
        for (let bit = 0; bit < Math.min(body.length * 8, 800); bit += 1) {
          const changed = Buffer.from(body)
          changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
          assert.notEqual(refusal(headers, changed), undefined, `bit ${bit}`)
        }
        assert.notEqual(refusal(headers, Buffer.concat([body, Buffer.from(' ')])), undefined)
        if (body.length > 0) assert.notEqual(refusal(headers, body.subarray(1)), undefined)
      }),
    )
  }
})

describe('any headers', () => {
  const id = 'msg_1'
  const time = String(Math.floor(nowMs / 1000))

  /** The forms that count for what the sender's secret is. */
  const formsOf = ({ scheme, secret }: Sender): SignatureForm[] =>
    schemeNamed(scheme).forms.filter((form) => keyBytes(form, secret) !== undefined)

  /** What the sender would write into the header of this form. */
  const signatureOf = (form: SignatureForm, { secret }: Sender, body: string): string => {
    const key = keyBytes(form, secret) ?? Buffer.alloc(0)
    if (form.check === 'token') return key.toString('latin1')
    const values = { timestamp: time, id, method: 'POST', url: '', path: '/' }
    return computeMac(form, key, Buffer.from(body), values).toString(form.encoding)
  }

  holds(
    'are refused, but for those with a signature of their own form, of this body, time and id',
    2000,
    fc.property(bytesLike('headers'), fc.constantFrom(...senders), (bytes, sender) => {
      const forms = formsOf(sender)
      const body = sender.bodyAt(nowMs)
      const headers: Record<string, string[]> = {}
      const signed: string[] = []
      for (const line of bytes.toString('latin1').split('\n')) {
        const [name = '', ...rest] = line.split(': ')
        const form = forms.find(({ header }) => header === name)
        const text = rest.join(': ').replaceAll('TIME', time).replaceAll('ID', id)
        if (form && text.includes('SIGNATURE')) signed.push(name)
        const value = form ? text.replaceAll('SIGNATURE', signatureOf(form, sender, body)) : text
        if (name !== '')
          headers[name] = [...(Object.hasOwn(headers, name) ? (headers[name] ?? []) : []), value]
      }
      const refusal = refusalOf(sender.scheme, [sender.secret], headers, Buffer.from(body), nowMs)
      if (refusal !== undefined) return assert.notEqual(refusal, '')
      const form = forms.find((each) => signed.includes(each.header))
      assert.ok(form, 'taken without a signature')
      for (const [name, expected] of [
        [form.timestampHeader, time],
        [form.idHeader, id],
      ] as const)
        if (name !== undefined) assert.deepEqual(headers[name], [expected])
      assert.equal(headers[form.header]?.length, 1)
    }),
  )
})
