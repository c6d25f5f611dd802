import assert from 'node:assert/strict'
import { LineReader, toBatch, toPayload } from '../../../daemon/sources/command/command-source.ts'
import { toBase, toFileTest } from '../../../daemon/sources/files/files-source.ts'

describe('the lines of a program', () => {
  it('are put together from pieces, whatever their ends', () => {
    const reader = new LineReader()
    const bytes = Buffer.from('one\ntwo\r\n\n  \nthrée\nfour')
    const lines = [...bytes].flatMap((byte) => reader.read(Buffer.from([byte])))
    assert.deepEqual(lines, ['one', 'two', 'thrée'])
    assert.deepEqual(reader.end(), ['four'])
    assert.deepEqual(reader.end(), [])
  })

  it('are cut where they never end, and hold no more memory than that', () => {
    const reader = new LineReader()
    const chunk = Buffer.alloc(64 * 1024, 'x')
    for (let count = 0; count < 1000; count += 1) assert.deepEqual(reader.read(chunk), [])
    const [line = '', next] = reader.read(Buffer.from('y\nnext\n'))
    assert.equal(line.length, 256 * 1024)
    assert.equal(next, 'next')
  })

  it('may be bytes that are no text', () => {
    const reader = new LineReader()
    const lines = reader.read(Buffer.from([0, 0xff, 0xfe, 10]))
    assert.deepEqual(lines, ['\0\ufffd\ufffd'])
    assert.deepEqual(toPayload(lines[0] ?? ''), { line: '\0\ufffd\ufffd' })
  })

  it('are a payload where they are a JSON object', () => {
    assert.deepEqual(toPayload('{"a": 1}'), { a: 1 })
    for (const line of ['[1]', '"a"', '{"a": ', 'null', '12'])
      assert.deepEqual(toPayload(line), { line })
    assert.deepEqual(toBatch(['{"a": 1}', 'two', '{"line": "x"}']), {
      lines: [{ a: 1 }, 'two', '{"line": "x"}'],
    })
  })
})

describe('the globs of files', () => {
  it('begin in the folder before their first star', () => {
    const rows = [
      ['/var/in/*.pdf', '/var/in'],
      ['/var/in/**/*.pdf', '/var/in'],
      ['/var/in/a*/b.pdf', '/var/in'],
      ['/var/in/report.pdf', '/var/in/report.pdf'],
      ['/*.log', '/'],
    ] as const
    for (const [glob, base] of rows) assert.equal(toBase(glob), base, glob)
  })

  it('match paths, with ** for no folder too', () => {
    const test = toFileTest(['/var/in/**/*.pdf', '/etc/motd'])
    for (const path of ['/var/in/a.pdf', '/var/in/x/y/a.pdf', '/etc/motd'])
      assert.equal(test(path), true, path)
    for (const path of ['/var/in/a.txt', '/var/a.pdf', '/etc/motd2', '/other/var/in/a.pdf'])
      assert.equal(test(path), false, path)
  })
})
