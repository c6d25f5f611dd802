import * as fc from 'fast-check'
import { readSentence } from '../../fixtures/planted-fault.ts'
import { bytesLike, holds } from '../../support/fuzz/fuzz.ts'

// Run by `guided.test.ts`, with a corpus of its own: not one of the tests.
describe('any sentence', () => {
  holds(
    'is read',
    80_000,
    fc.property(bytesLike('sentences'), (bytes) => {
      readSentence(bytes.toString('latin1'))
    }),
  )
})
