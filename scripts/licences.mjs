// Checks that whoever installs doorward may use it and pass it on: every package of the lock file has one
// of the licences below. A production package also has no script that runs when it is installed, so that
// `npm install --ignore-scripts` is a whole install. Those that are for another system, and so not
// installed, are taken by what the lock file says of them.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

/** SPDX names of licences that ask for no more than their own text (and a notice). */
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

/** Of development only, which nobody is given: what they say of themselves, where that is no SPDX name. */
const ofDevelopment = new Map([
  ['argparse', 'PSF-2.0'],
  ['jsbi', 'Apache-2.0, said in its LICENSE alone'],
  ['map-stream', 'MIT, said in its LICENCE alone'],
])

/** True for an SPDX expression of which we may use at least one side. */
export const isAllowed = (expression) =>
  expression
    .replace(/^\((.*)\)$/, '$1')
    .split(/\s+OR\s+/)
    .some((side) => side.split(/\s+AND\s+/).every((name) => allowed.has(name)))

/** Older packages have an object or a list, and names of their own for the same licences. */
const licenceOf = ({ license, licenses }) => {
  const given = license ?? licenses
  const names = [given].flat().map((one) => (typeof one === 'object' ? one?.type : one))
  const spdx = names.map((name) => ({ 'MIT/X11': 'MIT', Apache2: 'Apache-2.0' })[name] ?? name)
  return spdx.every((name) => typeof name === 'string') && spdx.length > 0 ? spdx.join(' OR ') : ''
}

const installScripts = ['preinstall', 'install', 'postinstall']

/** What is wrong with one package of the lock file, as lines. */
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
