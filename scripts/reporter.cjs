// Mocha's own dots (or whatever DOORWARD_TEST_REPORTER names), and at the very end its figures on a line of their own.
const { reporters, Runner } = require('mocha')

const Base = reporters[process.env.DOORWARD_TEST_REPORTER ?? 'Dot'] ?? reporters.Dot

module.exports = class extends Base {
  constructor(runner, options) {
    super(runner, options)
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = runner.stats
      // A test that failed may have left a server open, which would keep the run for ever.
      if (failures > 0) setTimeout(() => process.exit(1), 2000).unref()
      // One of several runs tells whoever started it, who adds them up.
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
