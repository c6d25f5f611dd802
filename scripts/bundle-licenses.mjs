// Collects the licence texts of the packages in a bundle, as their licences require. Refuses packages with
// other licences than those below.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

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

/** True for an SPDX expression with at least one allowed licence. */
export const isAllowed = (expression) =>
  expression
    .replace(/^\((.*)\)$/, '$1')
    .split(/\s+OR\s+/)
    .some((side) => side.split(/\s+AND\s+/).every((name) => allowed.has(name)))

/** Older packages have an object or a list, and other names for the same licences. */
export const licenceOf = ({ license, licenses }) => {
  const given = license ?? licenses
  const names = [given].flat().map((one) => (typeof one === 'object' ? one?.type : one))
  const spdx = names.map(
    (name) => ({ 'MIT/X11': 'MIT', 'MIT License': 'MIT', Apache2: 'Apache-2.0' })[name] ?? name,
  )
  return spdx.every((name) => typeof name === 'string') && spdx.length > 0 ? spdx.join(' OR ') : ''
}

/** Packages without a licence file, and the package of the same authors whose licence applies. */
const licensedAs = { 'koa-compose': 'koa' }

/** Returns the licences of the packages in a bundle as one text. */
export const licensesOf = (output) => {
  const ids = output.flatMap(({ moduleIds = [] }) => moduleIds)
  const folders = new Set(ids.map(packageOf).filter((folder) => folder !== undefined))
  const packages = [...folders].map((folder) => {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const { name, version } = manifest
    const licence = licenceOf(manifest)
    if (!isAllowed(licence)) throw new Error(`${name} may not be in a bundle: ${licence}`)
    const file = licenseFile(licensedAs[name] ? join(dirname(folder), licensedAs[name]) : folder)
    if (!file) throw new Error(`${name} has no file with its licence`)
    return `${name} ${version} (${licence})\n\n${readFileSync(file, 'utf8').trim()}\n`
  })
  const texts = packages.toSorted((a, b) => a.localeCompare(b, 'en'))
  return `The files in this folder contain these packages.\n\n${texts.join(`\n${'-'.repeat(72)}\n\n`)}`
}

const licenseFile = (folder) => {
  const name = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry))
  return name && join(folder, name)
}

/** Returns the folder of the package that a module belongs to; undefined for our own modules. */
const packageOf = (id) => {
  if (!/[\\/]node_modules[\\/]/.test(id) || id.startsWith('\0')) return undefined
  let folder = dirname(id)
  // Some packages have a package.json without a name in a subfolder.
  while (!hasName(join(folder, 'package.json'))) folder = dirname(folder)
  return folder
}

const hasName = (file) =>
  existsSync(file) && typeof JSON.parse(readFileSync(file, 'utf8')).name === 'string'
