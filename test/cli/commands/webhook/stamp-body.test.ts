import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { stampBody } from '../../../../shared/signing/signing.ts'
import { holds } from '../../../support/fuzz/fuzz.ts'

const stamped = (text: string) => stampBody(Buffer.from(text), 'at', 7).toString()

describe('the time of sending in a body', () => {
  it('stands at the end, and leaves every other byte', () => {
    for (const [body, expected] of [
      ['{}', '{"at":7}'],
      [' { } \n', ' { "at":7} \n'],
      ['{"id":9007199254740993}', '{"id":9007199254740993,"at":7}'],
      ['{\n  "n": 1.0,\n  "u": "\\u00fc ü"\n}\n', '{\n  "n": 1.0,\n  "u": "\\u00fc ü"\n,"at":7}\n'],
      ['{"at" : 1 , "b": 1e400}', '{"at" : 1 , "b": 1e400,"at":7}'],
      ['{"at":{"at":[1,{"at":2}]},"b":2}', '{"at":{"at":[1,{"at":2}]},"b":2,"at":7}'],
      ['{"b":"}"}', '{"b":"}","at":7}'],
    ] as const)
      assert.equal(stamped(body), expected)
  })

  it('is not put into what is no object, nor into bytes that are no JSON', () => {
    for (const body of ['', '[]', '[{"at":1}]', '"at"', 'null', '{', '{"at":1', '\ufeff{}', 'at=1'])
      assert.equal(stamped(body), body)
    assert.deepEqual(stampBody(Buffer.from([0x22, 0xff]), 'at', 7), Buffer.from([0x22, 0xff]))
  })

  holds(
    'is all that changes, whatever the body is',
    1000,
    fc.property(
      fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
      fc.boolean(),
      fc.constantFrom('', ' \t'),
      (value, hasOne, space) => {
        const body = hasOne ? { ...value, at: value } : value
        const kept = JSON.parse(JSON.stringify(body)) as object
        assert.deepEqual(JSON.parse(stamped(JSON.stringify(body, null, space))), { ...kept, at: 7 })
      },
    ),
  )
})
