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
      // A test that passed may have done so too: the run fails. Mocha sets its own exit code at the exit.
      setTimeout(() => {
        const open = process.getActiveResourcesInfo().join(', ')
        console.error(`a test left something open 30 seconds after the last one: ${open}`)
        process.on('exit', () => (process.exitCode ||= 1))
        process.exit()
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
