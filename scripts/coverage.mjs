// Which lines of ours the tests run, in all processes: what runs is bundled, so that the bundles say here
// what they were made of.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, run, setUp, stamp } from './setup.mjs'

process.env.DOORWARD_SOURCE_MAPS = '1'
// Code from Node's cache is counted less exactly.
process.env.NODE_DISABLE_COMPILE_CACHE = '1'
rmSync(stamp, { force: true })
await setUp()
// The next command builds them as they are else.
process.on('exit', () => rmSync(stamp, { force: true }))
const args = ['--src', '.', '--include', 'dist/**', '--exclude', 'dist/test/**']
const reporters = ['text-summary', 'html'].flatMap((name) => ['--reporter', name])
const tests = [process.execPath, 'scripts/test.mjs', ...process.argv.slice(2)]
const c8 = join(root, 'node_modules', 'c8', 'bin', 'c8.js')
run(process.execPath, [c8, ...args, ...reporters, ...tests])
