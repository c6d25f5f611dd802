// Measures which lines the tests run, in all processes. The programs are bundled, so this builds them with
// source maps.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, run, setUp, stamp } from './setup.mjs'

process.env.DOORWARD_SOURCE_MAPS = '1'
// Cached code is counted less exactly.
process.env.NODE_DISABLE_COMPILE_CACHE = '1'
rmSync(stamp, { force: true })
await setUp()
// Makes the next command build without source maps.
process.on('exit', () => rmSync(stamp, { force: true }))
const args = ['--src', '.', '--include', 'dist/**', '--exclude', 'dist/test/**']
const reporters = ['text-summary', 'html'].flatMap((name) => ['--reporter', name])
const tests = [process.execPath, 'scripts/test.mjs', ...process.argv.slice(2)]
const c8 = join(root, 'node_modules', 'c8', 'bin', 'c8.js')
run(process.execPath, [c8, ...args, ...reporters, ...tests])
