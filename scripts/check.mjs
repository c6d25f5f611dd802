// The quick local check: format, lint, types, licences, and the tests that need no daemon.
import { join } from 'node:path'
import { root, run, setUp } from './setup.mjs'

await setUp()
const bin = (name, ...path) => join(root, 'node_modules', name, ...path)
run(process.execPath, [bin('prettier', 'bin', 'prettier.cjs'), '--check', '--log-level=warn', '.'])
run(process.execPath, [bin('oxlint', 'bin', 'oxlint'), '--type-aware', '--deny-warnings'])
run(process.execPath, [join(root, 'scripts', 'licences.mjs')])
if (!process.argv.includes('--no-tests'))
  run(process.execPath, [
    bin('mocha', 'bin', 'mocha.js'),
    '--ignore',
    'dist/test/{flows,desktop,page,cli,agent-clis}/**',
    'dist/test/**/*.test.js',
  ])
