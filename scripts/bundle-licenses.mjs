// Collects the licence texts of the packages in a bundle, as their licences require.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Packages without a licence file, and the package of the same authors whose licence applies. */
const licensedAs = { 'koa-compose': 'koa' }

/** Returns the licences of the packages in a bundle as one text. */
export const licensesOf = (output) => {
  const ids = output.flatMap(({ moduleIds = [] }) => moduleIds)
  const folders = new Set(ids.map(packageOf).filter((folder) => folder !== undefined))
  const packages = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    )
    const file = licenseFile(licensedAs[name] ? join(dirname(folder), licensedAs[name]) : folder)
    if (!file) throw new Error(`${name} has no file with its licence`)
    return `${name} ${version} (${license})\n\n${readFileSync(file, 'utf8').trim()}\n`
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
