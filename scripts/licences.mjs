// Checks that users may use doorward and pass it on: every package of the lock file has one of the licences
// below. A production package also has no install script, so `npm install --ignore-scripts` is complete.
// For packages of other systems, which are not installed, the lock file counts.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

/** SPDX names of licences that require only their own text and a notice. */
const allowed = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  '0BSD',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'Unlicense',
])

/** Licences of development packages that have no SPDX name; these packages are not distributed. */
const ofDevelopment = new Map([
  ['argparse', 'PSF-2.0'],
  ['jsbi', 'Apache-2.0, said in its LICENSE alone'],
  ['map-stream', 'MIT, said in its LICENCE alone'],
])

/** True for an SPDX expression with at least one allowed licence. */
export const isAllowed = (expression) =>
  expression
    .replace(/^\((.*)\)$/, '$1')
    .split(/\s+OR\s+/)
    .some((side) => side.split(/\s+AND\s+/).every((name) => allowed.has(name)))

/** Older packages have an object or a list, and other names for the same licences. */
const licenceOf = ({ license, licenses }) => {
  const given = license ?? licenses
  const names = [given].flat().map((one) => (typeof one === 'object' ? one?.type : one))
  const spdx = names.map(
    (name) => ({ 'MIT/X11': 'MIT', 'MIT License': 'MIT', Apache2: 'Apache-2.0' })[name] ?? name,
  )
  return spdx.every((name) => typeof name === 'string') && spdx.length > 0 ? spdx.join(' OR ') : ''
}

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
