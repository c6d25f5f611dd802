import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Home } from '../shared/home/home.ts'
import { killDaemons, startDaemon } from '../test/support/daemon/daemon.ts'
import { type Desktop, startDesktop } from '../test/support/desktop/desktop.ts'
import { removeTemporaryFolders } from '../test/support/temporary.ts'
import { startTray } from '../test/support/desktop/tray.ts'

/*
 * What the tray costs, with its goals: the time from the start of `node dist/tray/main.js` until its
 * icon is registered at a panel, with the tray program already in place and at the first start of a
 * home; then, connected to a daemon, settled and left alone for a minute, its processor time, how often its
 * main thread woke, and the memory of both its processes, compared with a Node that does nothing. Linux only; on a virtual display and a private bus.
 */

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 9)
/** V8 tidies the heap once after a start, up to 25 s later: 40 ms that are no part of being idle. */
const settleMs = 30_000
const idleMs = 60_000

type Unit = 'ms' | 'MB' | 'times'
type Sample = { readonly what: string; readonly unit: Unit; readonly value: number }

const goals: Readonly<Record<string, number>> = {
  'start to icon': 500,
  'idle CPU in 60 s: tray': 50,
  // Four heartbeats of the daemon, a timer, and now and then a status.
  'woke in 60 s: tray': 10,
  'RSS: tray': 60,
  'RSS: tray program': 30,
}

const main = async (): Promise<void> => {
  if (process.platform !== 'linux') return console.log('tray: measured on Linux only')
  const desktop = await startDesktop()
  try {
    const daemon = await startDaemon({ webhooks: webhook })
    const samples: Sample[] = []
    for (let round = 0; round < rounds; round += 1) {
      await rm(join(daemon.home.run, 'tray'), { recursive: true, force: true })
      samples.push(await measureStart('first start of a home to icon', daemon.home, desktop))
      samples.push(await measureStart('start to icon', daemon.home, desktop))
      samples.push(await measureNode())
    }
    samples.push(...(await measureIdle(daemon.home, desktop)))
    await daemon.stop()
    report(samples)
  } finally {
    killDaemons()
    await desktop.stop()
    await removeTemporaryFolders()
  }
}

const webhook = 'webhooks:\n  - { path: /bench, agent: echo, prompt_template: "{{event}}" }\n'

const measureStart = async (what: string, home: Home, desktop: Desktop): Promise<Sample> => {
  const start = performance.now()
  const tray = startTray(home, desktop.env)
  await desktop.untilIcon()
  const value = performance.now() - start
  await tray.stop()
  return { what, unit: 'ms', value }
}

const measureNode = async (): Promise<Sample> => {
  const start = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
  return { what: 'node -e 0: whole process', unit: 'ms', value: performance.now() - start }
}

const measureIdle = async (home: Home, desktop: Desktop): Promise<Sample[]> => {
  const idle = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' })
  const tray = startTray(home, desktop.env)
  try {
    await desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
    const processes: readonly (readonly [string, number])[] = [
      ['tray', pidOf(tray.process)],
      // The same process where no other program shows the icon.
      ...[await desktop.iconProcess()]
        .filter((pid) => pid !== tray.process.pid)
        .map((pid) => ['tray program', pid] as const),
    ]
    await delay(settleMs)
    const before = await Promise.all(processes.map(([, pid]) => readUse(pid)))
    await delay(idleMs)
    const after = await Promise.all(processes.map(([, pid]) => readUse(pid)))
    const since = (index: number, of: keyof Use) =>
      (after[index]?.[of] ?? 0) - (before[index]?.[of] ?? 0)
    return [
      ...processes.flatMap(([name], index) => [
        {
          what: `idle CPU in 60 s: ${name}`,
          unit: 'ms' as const,
          value: since(index, 'processorMs'),
        },
        { what: `woke in 60 s: ${name}`, unit: 'times' as const, value: since(index, 'waits') },
      ]),
      ...(await memoryOf([...processes, ['a Node that does nothing', pidOf(idle)]])),
    ]
  } finally {
    await tray.stop()
    idle.kill()
  }
}

const pidOf = ({ pid }: ChildProcess): number => {
  if (pid === undefined) throw new Error('it was not started')
  return pid
}

type Use = { readonly processorMs: number; readonly waits: number }

/**
 * Processor time of all threads so far, in steps of 10 ms, and how often the main thread waited for
 * something; proc(5).
 */
const readUse = async (pid: number): Promise<Use> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name before the last parenthesis may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return {
    processorMs: (Number(fields[11]) + Number(fields[12])) * 10,
    waits: Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]),
  }
}

/** RSS counts what is shared with other processes whole, PSS only this one's part of it. */
const memoryOf = async (
  processes: readonly (readonly [name: string, pid: number])[],
): Promise<Sample[]> => {
  const samples: Sample[] = []
  for (const kind of ['Rss', 'Pss'])
    for (const [name, pid] of processes) {
      const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
      const kilobytes = Number(new RegExp(`^${kind}: +(\\d+) kB`, 'm').exec(text)?.[1])
      const what = `${kind.toUpperCase()}: ${name}`
      samples.push({ what, unit: 'MB', value: (kilobytes * 1024) / 1e6 })
    }
  return samples
}

const report = (samples: readonly Sample[]): void => {
  console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`)
  console.log(`${rounds} rounds of starts in turn: median (least to most); the rest once\n`)
  for (const what of new Set(samples.map((sample) => sample.what))) {
    const all = samples.filter((sample) => sample.what === what)
    const sorted = all.map(({ value }) => value).toSorted((a, b) => a - b)
    const at = (part: number) =>
      Number((sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1))
    const unit = all[0]?.unit
    const goal = goals[what]
    const spread = sorted.length > 1 ? `  (${at(0)} to ${at(1)})` : ''
    const verdict =
      goal === undefined ? '' : `  goal: below ${goal}${at(0.5) < goal ? '' : ', missed'}`
    console.log(`${what.padEnd(34)} ${at(0.5).toFixed(1).padStart(8)} ${unit}${spread}${verdict}`)
    console.log(
      JSON.stringify({ what, unit, median: at(0.5), ...(goal === undefined ? {} : { goal }) }),
    )
  }
}

await main()
