import { spawn } from 'node:child_process'
import { plainLine } from '../plain-text.ts'

export type Finished = {
  /** 127 when it cannot be run, 124 when it took too long. */
  readonly code: number
  readonly stdout: string
  /** One line of it, to be shown. */
  readonly said: string
}

/** Runs a program of the system to its end, at most `timeoutMs`; never throws. */
export const runTool = async (
  program: string,
  args: readonly string[],
  timeoutMs = 10_000,
): Promise<Finished> =>
  new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      windowsHide: true,
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('error', () => resolve({ code: 127, stdout, said: `${program} cannot be run` }))
    child.once('close', (code) =>
      resolve({ code: code ?? 124, stdout, said: plainLine(stderr).slice(0, 300) }),
    )
  })
