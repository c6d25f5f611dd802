// Runs only the tests of faults around the daemon, which `npm test` runs too. `--long` takes some 25 minutes:
// 500 kills, 480 more at every step of a refresh, and events of a day and a half. A seed from a title
// repeats the random moments: DOORWARD_FAULTS_SEED=123.
const args = process.argv.slice(2)
if (args.includes('--long')) process.env.DOORWARD_FAULTS = 'long'
const named = args.filter((arg) => arg !== '--long')
const files = [
  'dist/test/faults/**/*.test.js',
  'dist/test/flows/*/{killed*,webhook-queue,restart*}.test.js',
]
process.argv.splice(
  2,
  Infinity,
  ...(named.some((arg) => arg.endsWith('.js')) ? [] : files),
  ...named,
)
await import('./test.mjs')
