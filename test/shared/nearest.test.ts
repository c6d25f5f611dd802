import assert from 'node:assert/strict'
import { didYouMean } from '../../shared/text.ts'

describe('the nearest name', () => {
  const names = ['echo', 'reviewer', 'prompt_template', 'port']
  for (const [given, meant] of [
    ['eco', 'echo'],
    ['Echo', 'echo'],
    ['prot', 'port'],
    ['reviewr', 'reviewer'],
    ['promt_templat', 'prompt_template'],
  ] as const)
    it(`to ${given} is ${meant}`, () =>
      assert.equal(didYouMean(given, names), `did you mean "${meant}"?`))

  it('is none when nothing is near, or there is nothing', () => {
    for (const given of ['something', '', 'xy', 'x'])
      assert.equal(didYouMean(given, names), undefined)
    assert.equal(didYouMean('echo', []), undefined)
  })

  it('is no further away than it may be', () => {
    assert.equal(didYouMean('promt_templat', names, 2), 'did you mean "prompt_template"?')
    assert.equal(didYouMean('promt_templat', names, 1), undefined)
  })

  it('is none when a short name would have to change wholly', () => {
    assert.equal(didYouMean('ab', ['cd']), undefined)
    assert.equal(didYouMean('x', ['y', 'ab']), undefined)
  })
})
