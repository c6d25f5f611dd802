import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type LoadingModule, type Loaded, loadCompiled } from '../../shared/load-compiled.ts'
import { packageFolder } from '../../shared/version.ts'
import { cleanEnvironment } from '../support/daemon.ts'
import { temporaryFolder } from '../support/temporary.ts'

const run = promisify(execFile)
const keeper = fileURLToPath(new URL('scripts/keep-compiled.cjs', packageFolder))
const loaderUrl = new URL('../../shared/load-compiled.js', import.meta.url).href

const one =
  'exports.answer = () => 1\nexports.at = [__filename, __dirname, typeof require("node:fs")]\n'
const two = one.replace('=> 1', '=> 2')

type Exports = { readonly answer: () => number; readonly at: readonly string[] }

/** What a load gives, and what V8 said of the code it was given: undefined where it was given none. */
const load = (folder: string): { exports: Exports; rejected: boolean | undefined } => {
  const module: LoadingModule = { filename: join(folder, 'part.cjs'), exports: { loadCompiled } }
  const list: Loaded[] = []
  const key = Symbol.for('doorward.loaded')
  const there = globalThis as { [key]?: Loaded[] }
  const coverage = process.env['NODE_V8_COVERAGE']
  there[key] = list
  // It takes no code while somebody counts what runs.
  delete process.env['NODE_V8_COVERAGE']
  try {
    loadCompiled(module, createRequire(import.meta.url))
  } finally {
    delete there[key]
    if (coverage !== undefined) process.env['NODE_V8_COVERAGE'] = coverage
  }
  return { exports: module.exports as Exports, rejected: list[0]?.script.cachedDataRejected }
}

/** A folder with this file, and the code that a process has left of it. */
const compiledFolder = async (): Promise<string> => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'part.code.cjs'), one)
  const program = `import { loadCompiled } from ${JSON.stringify(loaderUrl)}
import { createRequire } from 'node:module'
const list = (globalThis[Symbol.for('doorward.loaded')] ??= [])
const module = { filename: ${JSON.stringify(join(folder, 'part.cjs'))}, exports: {} }
loadCompiled(module, createRequire(import.meta.url))
const answer = module.exports.answer()
console.log(JSON.stringify({ answer, at: module.exports.at, rejected: list[0].script.cachedDataRejected }))
`
  await writeFile(join(folder, 'program.mjs'), program)
  assert.deepEqual(await loadElsewhere(folder, '--require', keeper), {
    answer: 1,
    at: [join(folder, 'part.code.cjs'), folder, 'object'],
  })
  return folder
}

/**
 * What `load` gives, in a process of its own: V8 takes code of a process with the same flags only, and other
 * tests of this process change them.
 */
const loadElsewhere = async (folder: string, ...options: readonly string[]): Promise<unknown> => {
  const { stdout } = await run(process.execPath, [...options, join(folder, 'program.mjs')], {
    // Nor does it take any while somebody counts what runs. To be named, or Node hands it on by itself.
    env: { ...cleanEnvironment(), NODE_V8_COVERAGE: undefined },
  })
  return JSON.parse(stdout)
}

const withOneBitTurned = (bytes: Buffer, place: number): Buffer => {
  const turned = Buffer.from(bytes)
  turned[place] = (turned[place] ?? 0) ^ 1
  return turned
}

describe('code that was compiled before', () => {
  it('stands for the module that loads it, whether it is there or not', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'part.code.cjs'), one)
    const { exports, rejected } = load(folder)
    assert.equal(rejected, undefined)
    assert.equal(exports.answer(), 1)
    assert.deepEqual(exports.at, [join(folder, 'part.code.cjs'), folder, 'object'])
    assert.deepEqual(Object.keys(exports), ['answer', 'at'])
  })

  it('is left by a process that ends, whole and alone, and taken by the next', async () => {
    const folder = await compiledFolder()
    assert.deepEqual((await readdir(folder)).toSorted(), [
      'part.code.cjs',
      'part.code.compiled',
      'program.mjs',
    ])
    assert.deepEqual(await loadElsewhere(folder), {
      answer: 1,
      at: [join(folder, 'part.code.cjs'), folder, 'object'],
      rejected: false,
    })
  })

  it('is made anew by a process whose V8 has other flags', async () => {
    const folder = await compiledFolder()
    assert.deepEqual(await loadElsewhere(folder, '--expose-gc'), {
      answer: 1,
      at: [join(folder, 'part.code.cjs'), folder, 'object'],
      rejected: true,
    })
  })

  it('is not taken for a source of the same length', async () => {
    const folder = await compiledFolder()
    await writeFile(join(folder, 'part.code.cjs'), two)
    const { exports, rejected } = load(folder)
    assert.equal(rejected, undefined)
    assert.equal(exports.answer(), 2)
  })

  it('is not taken once a bit of it has turned, or a part is missing', async () => {
    const folder = await compiledFolder()
    const path = join(folder, 'part.code.compiled')
    const whole = await readFile(path)
    const damaged = [
      withOneBitTurned(whole, 0),
      withOneBitTurned(whole, 40),
      withOneBitTurned(whole, whole.length - 1),
      whole.subarray(0, -8),
      whole.subarray(0, 10),
      Buffer.alloc(0),
    ]
    for (const bytes of damaged) {
      await writeFile(path, bytes)
      const { exports, rejected } = load(folder)
      assert.equal(rejected, undefined)
      assert.equal(exports.answer(), 1)
    }
  })

  it('throws what the file throws, and says where', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'part.code.cjs'), '\n  throw new Error("no")\n')
    assert.throws(
      () => load(folder),
      (error: Error) => error.stack?.includes(`${join(folder, 'part.code.cjs')}:2:9`) ?? false,
    )
    await rm(join(folder, 'part.code.cjs'))
    assert.throws(() => load(folder), { code: 'ENOENT' })
  })
})
