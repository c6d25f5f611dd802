import { spawn } from 'node:child_process'
import { release } from 'node:os'
import { join } from 'node:path'
import type { Status } from '../../shared/api/api.ts'
import { errorName } from '../../shared/errors.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { findUserHome, type Home } from '../../shared/home/home.ts'
import { version } from '../../shared/version.ts'
import { Bus } from '../dbus/bus.ts'
import { toBody, type Note } from '../notifications/note.ts'
import { privateWords, redact, type Words } from '../text.ts'
import { runCommand, withDaemon } from './daemon.ts'
import { openPath } from './open.ts'

const limitMs = 30_000

/**
 * The report of `doorward doctor`, or basic facts without it, as JSON text in ASCII to share with others.
 * Contains no token, secret, payload, prompt, answer or account name.
 */
const collectDiagnostics = async (home: Home): Promise<string> => {
  const status = await withDaemon(home, async (client) => client.get<Status>('/status')).catch(
    errorName,
  )
  // The command fails whenever its report contains a problem.
  const { stdout } = await runCommand(home, ['doctor'], limitMs)
  const report = readReport(stdout) ?? toBasicFacts(status)
  const words: Words = [
    [home.root, '<home>'],
    [findUserHome() ?? '', '~'],
    ...(typeof status === 'string' ? [] : privateWords(status)),
  ]
  // Not every clipboard program keeps other characters.
  return `${JSON.stringify(redact(report, words), null, 2).replaceAll(
    /[^\0-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}\n`
}

/** Undefined when the command printed no JSON object. */
const readReport = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** `status` is the status of the daemon, or the name of the error. */
const toBasicFacts = (status: Status | string): object => ({
  version,
  platform: `${process.platform} ${release()} ${process.arch}`,
  node: process.version,
  daemon: typeof status === 'string' ? status : status.version,
})

/** Copies diagnostics to the clipboard, or without one writes them to a file and opens it. */
export const copyDiagnostics = async (home: Home, show: (note: Note) => void): Promise<void> => {
  const text = await collectDiagnostics(home)
  if (await copyText(text))
    return show({
      subject: 'diagnostics copied',
      body: toBody('Paste them where you ask for help. They contain no token, secret or payload.'),
    })
  // More desktops have a program for text files than for JSON.
  const path = join(home.logs, 'diagnostics.txt')
  await writeFileAtomic(path, text)
  show({
    subject: 'diagnostics written',
    body: toBody(`No clipboard program was found. They are in\n${path}`),
  })
  await openPath(path)
}

type Copier = readonly [program: string, ...args: string[]]

const clipboardLimitMs = 5000

/** The programs that copy standard input to the clipboard, best first. */
export const listCopiers = (platform: NodeJS.Platform, env: NodeJS.ProcessEnv): Copier[] => {
  if (platform === 'darwin') return [['pbcopy']]
  if (platform === 'win32') return [['clip.exe']]
  const wayland: Copier[] = [['wl-copy', '--type', 'text/plain']]
  const x11: Copier[] = [
    ['xclip', '-selection', 'clipboard'],
    ['xsel', '--clipboard', '--input'],
  ]
  const windows: Copier[] = env['WSL_DISTRO_NAME'] ? [['clip.exe']] : []
  return [...(env['WAYLAND_DISPLAY'] ? wayland : []), ...(env['DISPLAY'] ? x11 : []), ...windows]
}

/** Returns false without a clipboard program. */
const copyText = async (text: string): Promise<boolean> => {
  for (const copier of listCopiers(process.platform, process.env))
    if (await copyWith(copier, text)) return true
  return process.platform === 'linux' && copyWithKlipper(text)
}

/** By the clipboard of Plasma, which has none of the programs by default. */
const copyWithKlipper = async (text: string): Promise<boolean> => {
  const bus = await Bus.connect().catch(() => undefined)
  if (!bus) return false
  try {
    await bus.call({
      destination: 'org.kde.klipper',
      path: '/klipper',
      interface: 'org.kde.klipper.klipper',
      member: 'setClipboardContents',
      signature: 's',
      body: [text],
    })
    return true
  } catch {
    return false
  } finally {
    bus.close()
  }
}

/** By standard input, since other users of the machine can read arguments. */
const copyWith = async ([program, ...args]: Copier, text: string): Promise<boolean> =>
  new Promise((resolve) => {
    // On X11 a child process stays to provide the text, so wait for `exit`, not for `close`.
    const child = spawn(program, args, {
      stdio: ['pipe', 'ignore', 'ignore'],
      timeout: clipboardLimitMs,
      windowsHide: true,
    })
    child.once('error', () => resolve(false))
    child.once('exit', (code) => resolve(code === 0))
    child.stdin.on('error', () => undefined)
    child.stdin.end(text)
  })
