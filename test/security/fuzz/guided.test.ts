import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/temporary.ts'

const folder = fileURLToPath(new URL('./', import.meta.url))
const root = fileURLToPath(new URL('../../../../', import.meta.url))
const mocha = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js')
const minutes = Number(process.env['FUZZ_MINUTES'] ?? 0) / 2

/** Where it reached or found something in a minute that inputs of other kinds did not. */
const whereItHelps = ['callback', 'configuration', 'decoders', 'prompt'].map(
  (name) => `${name}.test.js`,
)

/** Some files of this folder in a process of their own, where what runs can be counted from the start. */
const run = async (files: readonly string[], env: NodeJS.ProcessEnv) => {
  // The counts of `npm run coverage` are not to be mixed with those that lead the inputs.
  const { NODE_V8_COVERAGE: _, ...rest } = process.env
  const child = spawn(process.execPath, [mocha, ...files.map((file) => join(folder, file))], {
    cwd: root,
    env: { ...rest, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed] = await Promise.all([
    text(child.stdout),
    new Promise((resolve) => child.once('close', resolve)),
  ])
  return { printed: printed.slice(0, 20_000), isGreen: child.exitCode === 0 }
}

describe('inputs made of those that reached a new place', () => {
  it('hold whatever holds of others', async function () {
    this.timeout(minutes * 60_000 + 240_000)
    const files = (await readdir(folder)).filter((name) => name.endsWith('.test.js'))
    const others = files.filter((name) => name !== basename(import.meta.url))
    // Each alone when there is time: the less code there is, the faster its counts are told.
    const groups = minutes > 0 ? others.map((file) => [file]) : [whereItHelps]
    for (const group of groups) {
      const share = String(minutes / groups.length)
      const { printed, isGreen } = await run(group, { FUZZ_GUIDED: '1', FUZZ_MINUTES: share })
      assert.ok(isGreen, printed)
    }
  })

  describe('find a fault that six words in a row lead to', function () {
    this.timeout(120_000)
    const words =
      'put down,seven seas,two green hills,many stones,come here,now or never,red,stop there'
    const search = async (sentences: readonly string[], env: NodeJS.ProcessEnv) => {
      const corpus = await temporaryFolder()
      const kind = join(corpus, 'sentences')
      await mkdir(kind)
      for (const [index, sentence] of sentences.entries())
        await writeFile(join(kind, `${index}.txt`), sentence)
      const { printed, isGreen } = await run(['planted.js'], {
        FUZZ_SEED: '7',
        FUZZ_MINUTES: '0',
        FUZZ_CORPUS: corpus,
        ...env,
      })
      const found = (await readdir(kind)).filter((name) => name.startsWith('found-'))
      const inputs = await Promise.all(found.map((name) => readFile(join(kind, name), 'utf8')))
      return { printed, isGreen, inputs }
    }

    it('which four times as many inputs of other kinds do not', async () => {
      const { printed, isGreen, inputs } = await search(words.split(','), { FUZZ_GUIDED: '' })
      assert.ok(isGreen, printed)
      assert.deepEqual(inputs, [])
    })

    it('print it with how to try it again, and leave it in the corpus, where all find it', async () => {
      const guided = { FUZZ_GUIDED: '1' }
      const [one, same] = await Promise.all([
        search(words.split(','), guided),
        search(words.split(','), guided),
      ])
      assert.ok(!one.isGreen)
      assert.match(one.printed, /the planted fault/)
      assert.match(one.printed, /FUZZ_GUIDED=1 FUZZ_SEED=7 tries the same again/)
      assert.match(one.printed, /written to .*found-/)
      assert.equal(one.inputs.length, 1)
      assert.match(one.inputs[0] ?? '', /^put seven green stones here now/)

      const tries = (printed: string) => /failed after (\d+) tests/.exec(printed)?.[1]
      assert.equal(tries(one.printed), tries(same.printed))
      assert.deepEqual(one.inputs, same.inputs)

      const again = await search(one.inputs, { FUZZ_GUIDED: '', FUZZ_SEED: '6' })
      assert.match(again.printed, /the planted fault/)
    })
  })
})
