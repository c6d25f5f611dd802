import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findSecrets, Needles } from '../../../../daemon/delivery/secrets/search.ts'
import { packageFolder } from '../../../../shared/version.ts'
import { makeHonestAnswers } from '../../../support/honest-answers.ts'

const now = Date.UTC(2026, 10, 1)
const values = ['correct-horse', 'gho_held-token', 'f3b1c2d4e5f60718293a4b5c6d7e8f90']
const needles = new Needles(
  values.map((value) => ({ kind: 'env-value', name: 'the value of A', value })),
)

const look = async (text: string, what: string): Promise<string[]> => {
  const found = await findSecrets(text, needles, now)
  return found.map(({ kind, start, end }) => `${what}: ${kind} ${text.slice(start, end)}`)
}

describe('the search for secrets', () => {
  it('finds none in 220 answers with hashes, ids, pictures and example keys', async () => {
    const answers = makeHonestAnswers(220)
    assert.equal(new Set(answers).size, 220)
    const found = await Promise.all(answers.map((text, index) => look(text, String(index))))
    assert.deepEqual(found.flat(), [])
  })

  it('finds none in the documents, samples and lock file of this repository', async () => {
    const root = fileURLToPath(packageFolder)
    const names = ['README.md', 'package-lock.json']
    for (const folder of ['docs', 'config', 'assets/samples', 'assets/prompts'])
      for (const name of await readdir(join(root, folder)).catch(() => []))
        if (/\.\w+$/.test(name)) names.push(`${folder}/${name}`)
    assert.ok(names.length > 40)
    for (const name of names)
      assert.deepEqual(await look(await readFile(join(root, name), 'utf8'), name), [])
  })

  it('finds none in the documents of the packages that are installed', async () => {
    const folder = join(fileURLToPath(packageFolder), 'node_modules')
    // Its README has whole private keys.
    const packages = (await readdir(folder)).filter((name) => !/^[.@]|^starkbank/.test(name))
    let read = 0
    for (const name of packages) {
      const text = await readFile(join(folder, name, 'README.md'), 'utf8').catch(() => '')
      read += text === '' ? 0 : 1
      assert.deepEqual(await look(text, name), [])
    }
    assert.ok(read > 100)
  }).timeout(60_000)
})
