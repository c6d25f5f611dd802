import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, readdir, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { webhookPresets } from '../../shared/recipes/presets.ts'
import { cliKinds } from '../../shared/agents/clis.ts'
import { schemeNames } from '../../shared/signatures/presets.ts'
import { isOutputsKind, sentKinds } from '../../shared/targets/schema.ts'
import { errorStatuses } from '../../shared/errors.ts'
import { packageFolder } from '../../shared/version.ts'
import { docs, listPages, readPage } from './support/documents.ts'

const execFiled = promisify(execFile)
/** As a forge makes it of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#{1,4} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))

describe('the documents', () => {
  it('explain every error code', async () => {
    const codes = Object.keys(errorStatuses)
    const page = await readPage('troubleshooting.md')
    const explained = [...page.matchAll(/^### `([a-z-]+)`\n\n\S/gm)].map(([, code]) => code)
    assert.deepEqual(new Set(explained), new Set(codes))
    assert.equal(explained.length, codes.length)
  })

  it('name every warning', async () => {
    const page = await readPage('troubleshooting.md')
    const folder = new URL('shared/', packageFolder)
    const files = (await readdir(folder, { recursive: true })).filter((name) =>
      /warnings\.ts$|detect\.ts$/.test(name),
    )
    const sources = await Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')))
    const codes = sources.flatMap((source) =>
      [...source.matchAll(/(?:\bcode: |\bwarn\(|\bfault\(|\}\)\()\s*([^,]*),/g)].flatMap(
        ([, value = '']) => [...value.matchAll(/'([a-z-]+)'/g)].map(([, code = '']) => code),
      ),
    )
    assert.ok(codes.length > 25, codes.join())
    assert.deepEqual(
      codes.filter((code) => !page.includes(`\`${code}\``)),
      [],
    )
  })

  it('have every key of the configuration and every sender, as the schemas and the table say', async () => {
    const script = fileURLToPath(new URL('scripts/write-configuration.mjs', packageFolder))
    for (const [page, option] of [
      ['configuration.md', '--print'],
      ['webhooks.md', '--print-webhooks'],
    ] as const) {
      const { stdout } = await execFiled(process.execPath, [script, option])
      assert.equal(await readPage(page), stdout, 'run: node scripts/write-configuration.mjs')
    }
  })

  it('name every scheme, kind of agent and kind of target', async () => {
    const webhooks = await readPage('webhooks.md')
    for (const name of schemeNames) assert.ok(webhooks.includes(`\`${name}\``), name)
    const agents = await readPage('agents.md')
    for (const name of [...cliKinds, 'echo', 'openai', 'http', 'command'])
      assert.ok(agents.includes(`\`${name}\``), name)
    const targets = await readPage('targets.md')
    for (const kind of [...sentKinds, 'file', 'notify'])
      assert.ok(targets.includes(`\`${isOutputsKind(kind) ? 'outputs' : kind}:`), kind)
    for (const name of schemeNames) assert.ok(Object.hasOwn(webhookPresets, name), name)
  })

  it('link to what is there', async () => {
    for (const name of await listPages()) {
      const text = await readPage(name)
      for (const [, href = ''] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
        const [path = '', anchor] = href.split('#')
        const target = path === '' ? new URL(name, docs) : new URL(path, new URL(name, docs))
        assert.ok((await stat(target)).isFile(), `${name}: ${href}`)
        if (anchor === undefined) continue
        const anchors = anchorsOf(await readFile(target, 'utf8'))
        assert.ok(anchors.includes(anchor), `${name}: ${href}`)
      }
    }
  })

  it('name only files and folders that exist, and every dependency', async () => {
    const page = await readPage('../CONTRIBUTING.md')
    const names = [...page.matchAll(/`([^`\s]+)`/g)].map(([, name = '']) => name)
    const paths = names.filter((name) => /^[a-z.-]+\/./.test(name) || /^[a-z]+\/$/.test(name))
    assert.ok(paths.length > 80)
    const recipes = [
      ...(await readPage('extending.md')).matchAll(
        /`((?:shared|daemon|cli|assets|docs|scripts|test)\/[^`\s]+)`/g,
      ),
    ].map(([, path = '']) => path)
    assert.ok(recipes.length > 20)
    for (const path of [...paths, ...recipes]) await stat(new URL(path, packageFolder))
    const { dependencies, devDependencies } = JSON.parse(
      await readFile(new URL('package.json', packageFolder), 'utf8'),
    ) as Record<string, Record<string, string>>
    for (const name of Object.keys({ ...dependencies, ...devDependencies }))
      assert.ok(names.includes(name), name)
  })
})
