import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** A program that has not ended by then shows something; where it is the browser itself, it never ends. */
const patienceMs = 4000

/**
 * Shows a file, folder or page in the program the desktop has for it. Answers false if there is none:
 * the program that looks for one tells only by its exit code.
 */
export const openPath = async (path: string): Promise<boolean> => {
  try {
    const { default: open } = await import('open')
    const child: ChildProcess = await open(path)
    if (child.exitCode !== null) return child.exitCode === 0
    const signal = AbortSignal.timeout(patienceMs)
    const [code] = (await once(child, 'exit', { signal })) as [number | null]
    return code === 0 || code === null
  } catch (error) {
    return error instanceof Error && error.name === 'AbortError'
  }
}
