import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const path = (name: string): string => fileURLToPath(new URL(`../../../${name}`, import.meta.url))
const script = path('scripts/licences.mjs')

type Locked = {
  readonly version: string
  readonly integrity?: string
  readonly resolved?: string
  readonly dev?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}
type Manifest = Pick<Locked, 'dependencies' | 'devDependencies' | 'optionalDependencies'>

describe('what doorward is made of', () => {
  const manifest = JSON.parse(readFileSync(path('package.json'), 'utf8')) as Manifest
  const { packages } = JSON.parse(readFileSync(path('package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, Locked>>
  }

  it('is pinned to the version, in package.json and in the lock file alike', () => {
    const wanted = {
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.optionalDependencies,
    }
    for (const [name, version] of Object.entries(wanted)) {
      assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, name)
      assert.equal(packages[`node_modules/${name}`]?.version, version, name)
    }
    assert.deepEqual(packages['']?.dependencies, manifest.dependencies)
    assert.deepEqual(packages['']?.devDependencies, manifest.devDependencies)
    assert.deepEqual(packages['']?.optionalDependencies, manifest.optionalDependencies)
  })

  it('is held to a checksum each, from whichever registry it comes', () => {
    for (const [name, { integrity, resolved }] of Object.entries(packages)) {
      if (name === '') continue
      assert.match(integrity ?? '', /^sha512-/, name)
      assert.equal(resolved, undefined, name)
    }
  })

  it('may be used and passed on, and needs no script when it is installed', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    assert.match(stdout, /^licences: \d{3} packages, all allowed\n$/)
  })

  it('would be refused with another licence, with none, or with a script', () => {
    const cases = [
      [{ license: 'MIT' }, {}, 0],
      [{ license: '(GPL-3.0 OR MIT)' }, {}, 0],
      [{ license: 'MIT AND GPL-3.0' }, {}, 1],
      [{ license: 'GPL-3.0' }, {}, 1],
      [{ license: 'SEE LICENSE IN x' }, {}, 1],
      [{}, {}, 1],
      [{ licenses: [{ type: 'MIT' }] }, {}, 0],
      [{ license: 'MIT', scripts: { postinstall: 'x' } }, {}, 1],
      [{ license: 'MIT', scripts: { postinstall: 'x' } }, { dev: true }, 0],
      [{ license: 'MIT' }, { hasInstallScript: true }, 1],
    ] as const
    const code = `import(process.argv[2]).then(({ faultsOf }) => console.log(JSON.stringify(
      JSON.parse(process.argv[1]).map(([manifest, locked]) => faultsOf('node_modules/x', locked, manifest).length))))`
    const { stdout } = spawnSync(process.execPath, ['-e', code, JSON.stringify(cases), script], {
      encoding: 'utf8',
    })
    assert.deepEqual(
      JSON.parse(stdout),
      cases.map(([, , faults]) => faults),
    )
  })
})
