import { spawn } from 'node:child_process'

type Copier = readonly [program: string, ...args: string[]]

const clipboardLimitMs = 5000

/** The programs that put their standard input on the clipboard, the most fitting first. */
export const copiersOf = (platform: NodeJS.Platform, env: NodeJS.ProcessEnv): Copier[] => {
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

/** Puts a text on the clipboard. Answers false where the desktop has no program for that. */
export const copyText = async (text: string): Promise<boolean> => {
  for (const copier of copiersOf(process.platform, process.env))
    if (await copyWith(copier, text)) return true
  return false
}

/** By standard input: other users of the machine can read the arguments of a program. */
const copyWith = async ([program, ...args]: Copier, text: string): Promise<boolean> =>
  new Promise((resolve) => {
    // On X11 a child of it stays and keeps the text: only its own end is waited for, and no pipe.
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
