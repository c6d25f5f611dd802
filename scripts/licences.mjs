// Checks that users may use doorward and pass it on: every package of the lock file has a licence that
// bundle-licenses.mjs allows. A package that is installed with doorward also has no install script, so
// `npm install --ignore-scripts` is complete. The build checks the development packages that it bundles without
// the exceptions below. For packages of other systems, which are not installed, the lock file counts.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAllowed, licenceOf } from './bundle-licenses.mjs'
import { root } from './setup.mjs'

/** Other licences of development packages; the bundles contain none of them. */
const ofDevelopment = new Map([
  ['argparse', 'PSF-2.0'],
  ['axe-core', 'MPL-2.0, which is about changes to its own files'],
  ['jsbi', 'Apache-2.0, said in its LICENSE alone'],
  ['map-stream', 'MIT, said in its LICENCE alone'],
])

const installScripts = ['preinstall', 'install', 'postinstall']

/** Lists what is wrong with one package of the lock file. */
export const faultsOf = (path, locked, manifest) => {
  const name = path.replace(/^.*node_modules\//, '')
  const isDevelopment = Boolean(locked.dev ?? locked.devOptional)
  const licence = licenceOf(manifest ?? locked)
  const faults = []
  if (!isAllowed(licence) && !(isDevelopment && ofDevelopment.has(name)))
    faults.push(`${path}: the licence ${licence === '' ? 'is not named' : licence}`)
  const scripts = Object.keys(manifest?.scripts ?? {})
  const runs = locked.hasInstallScript || installScripts.some((script) => scripts.includes(script))
  if (runs && !isDevelopment) faults.push(`${path}: a script runs when it is installed`)
  return faults
}

const main = () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const paths = Object.keys(packages).filter((path) => path !== '')
  const faults = paths.flatMap((path) => {
    const file = join(root, path, 'package.json')
    const manifest = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
    return faultsOf(path, packages[path], manifest)
  })
  for (const fault of faults) console.error(fault)
  if (faults.length === 0) console.log(`licences: ${paths.length} packages, all allowed`)
  return faults.length === 0 ? 0 : 1
}

if (process.argv[1]?.endsWith('licences.mjs')) process.exitCode = main()
