import { spawnSync } from 'node:child_process'
import { ftruncateSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { resolveHome } from '../shared/home/home.ts'

/*
 * The daemon as launchd starts it. launchd starts a job again for ever, every ten seconds; so it is here
 * that a daemon which cannot be kept running is given up: the person is told, and an exit code of 0
 * makes launchd leave it alone until the next login or `doorward daemon start`.
 */

const burst = 6
const withinMs = 300_000
const unusable = 78

const { values } = parseArgs({ options: { home: { type: 'string' } }, strict: true })
/** When it was started, one time per line; a daemon that ends well removes it. */
const path = join(resolveHome(values.home).run, 'launchd-starts')

const startsBefore = (now: number): number[] => {
  try {
    const times = readFileSync(path, 'utf8').split('\n').filter(Boolean).map(Number)
    return times.filter((time) => time <= now && now - time < withinMs)
  } catch {
    return []
  }
}

const note = (times: readonly number[]): void => {
  try {
    writeFileSync(path, times.map((time) => `${time}\n`).join(''), { mode: 0o600 })
  } catch {
    // A home that cannot be written to: the daemon itself says so.
  }
}

const tellPerson = (): void => {
  const text = 'It could not be kept running. To see why: doorward daemon start'
  const script = `display notification "${text}" with title "Doorward has stopped"`
  spawnSync('osascript', ['-e', script], { stdio: 'ignore', timeout: 5000 })
}

const giveUp = (): void => {
  rmSync(path, { force: true })
  tellPerson()
}

try {
  // launchd only ever appends; what a start says is for that start.
  ftruncateSync(2)
} catch {
  // A terminal or a pipe.
}

const now = Date.now()
const before = startsBefore(now)
if (before.length >= burst) giveUp()
else {
  note([...before, now])
  process.on('exit', (code) => {
    if (code === 0) rmSync(path, { force: true })
    if (code !== unusable) return
    giveUp()
    process.exitCode = 0
  })
  void import('./main.ts')
}
