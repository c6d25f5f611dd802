// Mocha's dots (or the reporter in DOORWARD_TEST_REPORTER), and a last line with the figures.
const { reporters, Runner } = require('mocha')

const Base = reporters[process.env.DOORWARD_TEST_REPORTER ?? 'Dot'] ?? reporters.Dot

module.exports = class extends Base {
  constructor(runner, options) {
    super(runner, options)
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = runner.stats
      // A failed test may leave a server open, which would keep this process alive.
      if (failures > 0) setTimeout(() => process.exit(1), 2000).unref()
      // Nor may one that passed: CI would wait for its time limit.
      setTimeout(() => {
        console.error(
          'a test left something open: this run was ended 30 seconds after its last test',
        )
        process.exit(process.exitCode ?? 1)
      }, 30_000).unref()
      // The parent of several runs adds up their figures.
      if (process.send) {
        process.send({ passes, failures, pending }, () => process.disconnect())
        return
      }
      const leftOut = pending > 0 ? `, ${pending} left out` : ''
      process.on('exit', () =>
        process.stdout.write(`${passes} passed, ${failures} failed${leftOut}\n`),
      )
    })
  }
}
