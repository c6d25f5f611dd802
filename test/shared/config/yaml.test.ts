import assert from 'node:assert/strict'
import { type YamlPath, readYaml } from '../../../shared/config/yaml.ts'

describe('a YAML file', () => {
  const placeOf = (text: string, path: YamlPath) => {
    const { line, column, key } = readYaml('f.yaml', text).problemAt(path, 'here')
    return [line, column, key]
  }

  it('is read as plain values', () => {
    const { value, problems } = readYaml('f.yaml', 'a: [1, "2", true, null]\nb: { c: yes }\n')
    assert.deepEqual(value, { a: [1, '2', true, null], b: { c: 'yes' } })
    assert.deepEqual(problems, [])
  })

  it('knows the place of every key and item', () => {
    const text = 'a:\n  - b: 1\n    c.d: { e: [x, y] }\n'
    assert.deepEqual(placeOf(text, ['a']), [1, 1, 'a'])
    assert.deepEqual(placeOf(text, ['a', 0]), [2, 5, 'a[0]'])
    assert.deepEqual(placeOf(text, ['a', 0, 'b']), [2, 5, 'a[0].b'])
    assert.deepEqual(placeOf(text, ['a', 0, 'c.d', 'e', 1]), [3, 19, 'a[0]["c.d"].e[1]'])
  })

  it('knows how a value without quotes is written', () => {
    const { plainTextAt } = readYaml('f.yaml', "a: [1.10, '1.10', x, { b: 0x1F }, *c]\nd: &c 7\n")
    const paths: YamlPath[] = [['a', 0], ['a', 1], ['a', 2], ['a', 3, 'b'], ['a', 4], ['a'], ['e']]
    assert.deepEqual(
      paths.map((path) => plainTextAt(path)),
      ['1.10', undefined, 'x', '0x1F', undefined, undefined, undefined],
    )
    assert.equal(readYaml('f.yaml', '').plainTextAt(['a']), undefined)
  })

  it('names the nearest parent of what is not there', () => {
    const text = '\n\na:\n  b: 1\n'
    assert.deepEqual(placeOf(text, ['a', 'x', 'y']), [3, 1, 'a.x.y'])
    assert.deepEqual(placeOf(text, ['a', 'b', 'c']), [4, 3, 'a.b.c'])
    assert.deepEqual(placeOf(text, ['z']), [3, 1, 'z'])
    assert.deepEqual(placeOf('', ['z']), [1, 1, 'z'])
  })

  it('gives the place of an alias, not of what it stands for', () => {
    assert.deepEqual(placeOf('a: &x { b: 1 }\nc: *x\n', ['c', 'b']), [2, 1, 'c.b'])
  })

  it('counts lines and columns from 1 behind a byte order mark and Windows line ends', () => {
    assert.deepEqual(placeOf('\uFEFFa: 1\r\nb: 2\r\n', ['b']), [2, 1, 'b'])
  })

  it('comes without a value once something is wrong with it', () => {
    for (const text of ['a: [', 'a: 1\na: 2', '{ __proto__: 1 }', '? [a]\n: b', '*x', 'a: []\0'])
      assert.equal(readYaml('f.yaml', text).problems.length > 0, true, text)
    assert.equal(readYaml('f.yaml', '{ a: 1, __proto__: { b: 1 } }').value, null)
  })

  it('writes no warning of its own, whatever stands in it', () => {
    const warnings: unknown[] = []
    const listen = (warning: unknown) => warnings.push(warning)
    process.on('warning', listen)
    for (const text of ['? [a, b]\n: 1', '? { a: b }\n: 1', '%FOO x\n---\na', '? *x\n: 1'])
      assert.equal(readYaml('f.yaml', text).problems.length > 0, true)
    return new Promise<void>((resolve) =>
      setImmediate(() => {
        process.removeListener('warning', listen)
        assert.deepEqual(warnings, [])
        resolve()
      }),
    )
  })
})
