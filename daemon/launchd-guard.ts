import { spawnSync } from 'node:child_process'
import { ftruncateSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { resolveHome } from '../shared/home/home.ts'

/*
 * The daemon as launchd starts it. launchd restarts a job every ten seconds, without end. After six starts
 * in five minutes this program notifies the person and exits with 0, at which launchd leaves the job alone
 * until the next login or `doorward daemon start`.
 */

const burst = 6
const withinMs = 300_000
const unusable = 78

const { values } = parseArgs({ options: { home: { type: 'string' } }, strict: true })
/** The times of its starts, one per line; a daemon that exits with 0 removes it. */
const path = join(resolveHome(values.home).run, 'launchd-starts')

const startsBefore = (now: number): number[] => {
  try {
    const times = readFileSync(path, 'utf8').split('\n').filter(Boolean).map(Number)
    return times.filter((time) => time <= now && now - time < withinMs)
  } catch {
    return []
  }
}

const noteStarts = (times: readonly number[]): void => {
  try {
    writeFileSync(path, times.map((time) => `${time}\n`).join(''), { mode: 0o600 })
  } catch {
    // The daemon itself reports a home that it cannot write to.
  }
}

const notifyPerson = (): void => {
  const text = 'It could not be kept running. To see why: doorward daemon start'
  const script = `display notification "${text}" with title "Doorward has stopped"`
  spawnSync('osascript', ['-e', script], { stdio: 'ignore', timeout: 5000 })
}

const giveUp = (): void => {
  rmSync(path, { force: true })
  notifyPerson()
}

try {
  // launchd appends; keep the output of this start only.
  ftruncateSync(2)
} catch {
  // A terminal or a pipe.
}

const now = Date.now()
const before = startsBefore(now)
if (before.length >= burst) giveUp()
else {
  noteStarts([...before, now])
  process.on('exit', (code) => {
    if (code === 0) rmSync(path, { force: true })
    if (code !== unusable) return
    giveUp()
    process.exitCode = 0
  })
  void import('./main.ts')
}
