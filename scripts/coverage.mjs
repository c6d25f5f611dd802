// Which lines of ours the tests run, in all processes: what runs is bundled, so that the bundles say here
// what they were made of. The next command builds them anew without.
import { run, setUp } from './setup.mjs'

process.env.DOORWARD_SOURCE_MAPS = '1'
await setUp()
const args = ['--src', '.', '--include', 'dist/**', '--exclude', 'dist/test/**']
const reporters = ['text-summary', 'html'].flatMap((name) => ['--reporter', name])
const tests = [process.execPath, 'scripts/test.mjs', ...process.argv.slice(2)]
run('npx', ['c8', ...args, ...reporters, ...tests], { shell: process.platform === 'win32' })
