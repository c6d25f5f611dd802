// Builds, then runs a measurement (by default main, the table of goals) with the given arguments:
//   npm run bench                      # all of it, and writes bench/RESULTS.md
//   npm run bench -- --short           # under a minute
//   npm run bench -- cli               # another file of bench/
import { join } from 'node:path'
import { root, run, setUp } from './setup.mjs'

await setUp()
const [first = '', ...rest] = process.argv.slice(2)
const isNamed = first !== '' && !first.startsWith('-')
const name = isNamed ? first : 'main'
const args = isNamed ? rest : process.argv.slice(2)
run(process.execPath, [join(root, 'dist', 'bench', `${name}.js`), ...args])
