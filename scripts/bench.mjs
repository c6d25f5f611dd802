// Builds, and runs the measurements named (default: all of bench/).
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root, run, setUp } from './setup.mjs'

await setUp()
const named = process.argv.slice(2)
const all = readdirSync(join(root, 'dist', 'bench')).filter((name) => name.endsWith('.js'))
for (const name of named.length > 0 ? named.map((name) => `${name}.js`) : all)
  run(process.execPath, [join(root, 'dist', 'bench', name)])
