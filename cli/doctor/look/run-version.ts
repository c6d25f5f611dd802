import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { plainLines } from '../../../shared/text.ts'

/** How a program answered to `--version`. */
export type VersionRun =
  | { readonly is: 'answered'; readonly line: string }
  | { readonly is: 'failed'; readonly how: string }
  | { readonly is: 'late' }
  | { readonly is: 'not-run' }

const longestLine = 60
const mostBytes = 4096

/**
 * Runs `<path> --version` so many milliseconds at most, in a folder that is nobody's project, without
 * input and with these variables alone. What it has started is ended with it.
 */
export const runVersion = async (
  path: string,
  env: Readonly<Record<string, string>>,
  limitMs: number,
): Promise<VersionRun> => {
  // Only a shell could run those, with all that it reads into arguments.
  if (/\.(cmd|bat)$/i.test(path)) return { is: 'not-run' }
  return new Promise((resolve) => {
    const child = spawn(path, ['--version'], {
      cwd: tmpdir(),
      env: { ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: process.platform !== 'win32',
      windowsHide: true,
    })
    let output = ''
    const timer = setTimeout(() => {
      end(child.pid)
      child.stdout.destroy()
      resolve({ is: 'late' })
    }, limitMs)
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < mostBytes) output += text
    })
    child.once('error', (error) => {
      clearTimeout(timer)
      resolve({ is: 'failed', how: 'code' in error ? String(error.code) : 'it cannot be started' })
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve({ is: 'answered', line: firstLine(output) })
      else resolve({ is: 'failed', how: signal ? `ended by ${signal}` : `ended with ${code}` })
    })
  })
}

const firstLine = (text: string): string =>
  (
    plainLines(text)
      .split('\n')
      .map((line) => line.trim())
      .find((line) => line !== '') ?? ''
  ).slice(0, longestLine)

/** The whole group: many of these programs are scripts that start the real one. */
const end = (pid: number | undefined): void => {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}
