import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { systemCode } from '../../shared/errors.ts'
import { bodyArgument, titleText } from '../text.ts'
import { type Backend, type Notice, NotifyFailure } from './backend.ts'

/*
 * Notes by `notify-send -A` (libnotify 0.8 and later): one process for each note that has buttons,
 * until it is gone. It says its id only into a line-buffered output, so `stdbuf` starts it. What a note
 * says stands in its arguments, where other users of the machine may read it: the last way to go.
 */

const maxVisible = 8
const longestVisibleMs = 10 * 60_000
const graceMs = 500
const firstWithActions = [0, 8] as const

type Visible = { readonly child: ChildProcess; readonly id: string; readonly key?: string }

/** Shows notes by the `notify-send` on the path. */
export const notifySend = (env: NodeJS.ProcessEnv = process.env): Backend => {
  const visible = new Set<Visible>()
  const starting = new Set<ChildProcess>()
  let isSuited = false

  const letGo = (note: Visible): void => {
    visible.delete(note)
    note.child.kill('SIGTERM')
  }

  return {
    show: async (notice, onPressed, signal) => {
      isSuited ||= await hasActions(env, signal)
      const before = [...visible].find(({ key }) => key !== undefined && key === notice.key)
      // Both would hear the buttons of the note that takes its place.
      if (before) letGo(before)
      const child = spawn('stdbuf', ['-oL', 'notify-send', ...buildArguments(notice, before?.id)], {
        env,
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      starting.add(child)
      const lines = readLines(child)
      try {
        const id = await firstLine(child, lines.first, signal)
        // What it says when there is no service.
        if (id === '0') throw new NotifyFailure('no-service')
        if (child.exitCode !== null || child.signalCode !== null) return
        const note = { child, id, ...(notice.key === undefined ? {} : { key: notice.key }) }
        visible.add(note)
        const limit = setTimeout(() => letGo(note), longestVisibleMs)
        child.once('exit', () => {
          visible.delete(note)
          clearTimeout(limit)
        })
        lines.onMore((line) => {
          const button = notice.buttons.length > 0 ? parseButton(line) : undefined
          if (button !== undefined && button < notice.buttons.length) onPressed(button)
        })
        const [oldest] = visible
        if (oldest && visible.size > maxVisible) letGo(oldest)
      } catch (error) {
        child.kill('SIGKILL')
        throw error
      } finally {
        starting.delete(child)
      }
    },
    stop: async () => {
      for (const child of starting) child.kill('SIGKILL')
      await Promise.all([...visible].map(async ({ child }) => takeAway(child)))
    },
  }
}

const buildArguments = (notice: Notice, replaces: string | undefined): string[] => [
  '--app-name=Doorward',
  '--print-id',
  `--icon=${notice.icon}`,
  `--expire-time=${notice.shownMs}`,
  ...(replaces === undefined ? [] : [`--replace-id=${replaces}`]),
  ...notice.buttons.flatMap((label, index) => [
    ...(index === 0 ? [`--action=default=${label}`] : []),
    `--action=${index}=${label}`,
  ]),
  '--',
  titleText(notice.title),
  bodyArgument(notice.body),
]

const parseButton = (key: string): number | undefined => {
  if (key === 'default') return 0
  return /^\d{1,2}$/.test(key) ? Number(key) : undefined
}

/** Throws `no-program` where there is none; `unsuited` for one without buttons. */
const hasActions = async (env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<true> => {
  const run = promisify(execFile)
  const { stdout } = await run('notify-send', ['--version'], { env, signal }).catch(
    (error: unknown) => {
      if (signal.aborted) throw new NotifyFailure('silent')
      throw new NotifyFailure(systemCode(error) === 'ENOENT' ? 'no-program' : 'unsuited')
    },
  )
  const [, major, minor] = /(\d+)\.(\d+)/.exec(stdout) ?? []
  const [leastMajor, leastMinor] = firstWithActions
  const isNewer = Number(major) > leastMajor
  if (isNewer || (Number(major) === leastMajor && Number(minor) >= leastMinor)) return true
  throw new NotifyFailure('unsuited')
}

/** The lines it writes: the id, then the key of a button that was pressed. */
const readLines = (child: ChildProcess) => {
  let listener: ((line: string) => void) | undefined
  const early: string[] = []
  const first = new Promise<string>((resolve) => {
    if (!child.stdout) return
    createInterface(child.stdout)
      .once('line', resolve)
      .on('line', (line) => {
        if (listener) listener(line)
        else early.push(line)
      })
  })
  return {
    first,
    onMore: (hear: (line: string) => void) => {
      listener = hear
      early.slice(1).forEach(hear)
    },
  }
}

/** The id of the note, which it has once the desktop has taken it. */
const firstLine = async (
  child: ChildProcess,
  first: Promise<string>,
  signal: AbortSignal,
): Promise<string> => {
  const ended = new AbortController()
  const endOrAbort = AbortSignal.any([signal, ended.signal])
  const failed = new Promise<never>((_, reject) => {
    child.once('error', (error) =>
      // Without stdbuf there is no telling whether a note is shown.
      reject(new NotifyFailure(systemCode(error) === 'ENOENT' ? 'unsuited' : 'refused')),
    )
    // After `close` all its lines have been read.
    child.once('close', () => reject(new NotifyFailure('no-service')))
  })
  const aborted = once(endOrAbort, 'abort').then(() => {
    throw new NotifyFailure('silent')
  })
  failed.catch(() => undefined)
  aborted.catch(() => undefined)
  try {
    if (signal.aborted) throw new NotifyFailure('silent')
    return await Promise.race([first, failed, aborted])
  } finally {
    ended.abort()
  }
}

/** On SIGINT it closes its note; where the service hangs, nothing comes of that. */
const takeAway = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGINT')
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs)
  await ended
  clearTimeout(timer)
}
