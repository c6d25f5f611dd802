import assert from 'node:assert/strict'
import { nearest } from '../../shared/text.ts'

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
      assert.equal(nearest(given, names), `did you mean "${meant}"?`))

  it('is none when nothing is near, or there is nothing', () => {
    for (const given of ['something', '', 'xy', 'x']) assert.equal(nearest(given, names), undefined)
    assert.equal(nearest('echo', []), undefined)
  })

  it('is no further away than it may be', () => {
    assert.equal(nearest('promt_templat', names, 2), 'did you mean "prompt_template"?')
    assert.equal(nearest('promt_templat', names, 1), undefined)
  })

  it('is none when a short name would have to change wholly', () => {
    assert.equal(nearest('ab', ['cd']), undefined)
    assert.equal(nearest('x', ['y', 'ab']), undefined)
  })
})
