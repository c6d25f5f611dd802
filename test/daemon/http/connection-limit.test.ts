import assert from 'node:assert/strict'
import { connectionLimit } from '../../../daemon/http/server.ts'

const limits = (
  files: string,
) => `Limit                     Soft Limit           Hard Limit           Units
Max processes             127235               127235               processes
Max open files            ${files.padEnd(20)} 1048576              files
Max locked memory         8388608              8388608              bytes
`

describe('the limit of connections', () => {
  for (const [files, connections] of [
    ['1048576', 786_432],
    ['1024', 768],
    ['256', 128],
    ['100', 16],
    ['unlimited', undefined],
  ] as const)
    it(`is ${connections ?? 'none'} where ${files} files may be open`, () => {
      assert.equal(connectionLimit(limits(files)), connections)
    })

  it('is none where the text is another', () => {
    assert.equal(connectionLimit(''), undefined)
  })
})
