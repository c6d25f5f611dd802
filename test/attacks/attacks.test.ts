import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { packageFolder } from '../../shared/version.ts'
import { loginToken, type Scene, sshKey, stagingKey, startScene } from './scene.ts'
import { attacks, isUntouched, toTable } from './table.ts'

/** White space of a table depends on its longest cell. */
const toCells = (page: string): string[] =>
  page
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[ -|]*$/.test(line))
    .map((line) => line.replaceAll(/ +/g, ' '))

describe('an agent that obeys every text', function () {
  this.timeout(60_000)
  let scene: Scene
  before(async function () {
    // CI has bubblewrap; elsewhere these tests need it.
    if (process.platform !== 'linux') this.skip()
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    scene = await startScene()
  })
  after(async () => scene?.close())
  beforeEach(() => {
    for (const { requests } of [scene.target, scene.evil]) requests.length = 0
    for (const list of [scene.github.comments, scene.github.pulls]) list.length = 0
  })

  for (const { attack, mustNot, run } of attacks)
    it(`${attack}: not that ${mustNot}`, async () => {
      await run(scene)
      const left = await scene.left()
      for (const canary of [stagingKey, loginToken, sshKey]) assert.ok(!left.includes(canary))
      await isUntouched(scene)
    })
})

describe('the table of attacks', () => {
  it('has each attack of the tests, 40 or more, and no other', async () => {
    const page = await readFile(new URL('docs/attacks.md', packageFolder), 'utf8')
    assert.ok(attacks.length >= 40)
    assert.equal(new Set(attacks.map(({ attack }) => attack)).size, attacks.length)
    assert.deepEqual(toCells(page), toCells(toTable()))
  })
})
