import { watch } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { systemReason } from '../../../shared/home/home.ts'
import { toPlainJson } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { interruptSignal } from '../../terminal/spinner.ts'
import { logLine, readTail } from '../../daemon-client/log-tail.ts'

const lastLines = 50

/** Prints the end of the daemon's log, and with `follow` new lines until interrupted. */
export const showLogs = async (
  { home, terminal }: Context,
  _args: string[],
  { follow }: { readonly follow?: boolean },
): Promise<void> => {
  const print = (line: string) =>
    terminal.print(terminal.json ? toPlainJson(line) : logLine(line, terminal.paint))
  const file = await openLog(home.log)
  const { lines, end } = file ? await readTail(file, lastLines) : { lines: [], end: 0 }
  const earlier = await tailBefore(home.log, file, lastLines - lines.length)
  for (const line of [...earlier, ...lines]) print(line)
  if (!file && earlier.length === 0) terminal.say(`there is no log yet: ${home.log}`)
  if (follow) await followLog(home.logs, home.log, file, end, print)
  else await file?.close()
}

const openLog = async (path: string): Promise<FileHandle | undefined> => {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw new DoorwardError('home-unusable', `cannot read ${path}: ${systemReason(error)}`, {
      cause: error,
    })
  }
}

/** Lines of the previous file, when the newest has too few because it was just rotated. */
const tailBefore = async (
  path: string,
  newest: FileHandle | undefined,
  count: number,
): Promise<string[]> => {
  const old = count > 0 ? await openLog(`${path}.1`) : undefined
  if (!old) return []
  try {
    // Rotated between the two reads: use the lines we have.
    const isSame = newest && (await newest.stat()).ino === (await old.stat()).ino
    return isSame ? [] : (await readTail(old, count)).lines
  } finally {
    await old.close()
  }
}

/** Survives rotation: when another file has the name, the rest of the old one is printed first. */
const followLog = async (
  folder: string,
  path: string,
  first: FileHandle | undefined,
  end: number,
  print: (line: string) => void,
): Promise<void> => {
  const signal = interruptSignal()
  let file = first
  let position = end
  let rest = ''
  let decoder = new StringDecoder('utf8')

  const readOn = async (): Promise<void> => {
    const chunk = Buffer.alloc(65_536)
    for (;;) {
      const { bytesRead } = (await file?.read(chunk, 0, chunk.length, position)) ?? { bytesRead: 0 }
      if (bytesRead === 0) return
      position += bytesRead
      const lines = (rest + decoder.write(chunk.subarray(0, bytesRead))).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) print(line)
    }
  }
  const catchUp = async (): Promise<void> => {
    await readOn()
    const now = await stat(path).catch(() => undefined)
    const known = await file?.stat()
    if (!now || (known && now.ino === known.ino && now.size >= position)) return
    // Lines written between the two reads; a rotated file gets no more.
    await readOn()
    await file?.close()
    file = await openLog(path)
    position = 0
    rest = ''
    decoder = new StringDecoder('utf8')
    await readOn()
  }

  await eachChange(folder, basename(path), signal, catchUp)
  await file?.close()
}

/** Calls `act` now and after every change, one call at a time, until it throws `interrupted`. */
const eachChange = async (
  folder: string,
  name: string,
  signal: AbortSignal,
  act: () => Promise<void>,
): Promise<void> => {
  let wake: () => void = () => undefined
  let changed = true
  const note = () => {
    changed = true
    wake()
  }
  const watcher = watch(folder, (_, changedName) => {
    if (changedName === null || changedName === name) note()
  })
  watcher.on('error', () => undefined)
  // Network folders and some systems report no changes.
  const timer = setInterval(note, 1000)
  signal.addEventListener('abort', () => wake(), { once: true })
  try {
    while (!signal.aborted) {
      if (changed) {
        changed = false
        await act()
      } else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    clearInterval(timer)
    watcher.close()
  }
  throw new DoorwardError('interrupted', 'interrupted')
}
