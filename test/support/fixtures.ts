import assert from 'node:assert/strict'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The argv that runs a program of `test/fixtures/agents` by this Node. */
export const fixtureAgent = (name: string, ...args: readonly string[]): string[] => [
  process.execPath,
  fileURLToPath(new URL(`../../../test/fixtures/agents/${name}.mjs`, import.meta.url)),
  ...args,
]

/** The pids that a fixture writes into the file `pids` of this folder, once they are there. */
export const pidsIn = async (folder: string): Promise<number[]> => {
  const watcher = watch(folder)
  try {
    const read = () => readFile(join(folder, 'pids'), 'utf8').catch(() => undefined)
    for (;;) {
      // Listen before reading: the change may come during the read.
      const changed = once(watcher, 'change')
      const text = await read()
      if (text !== undefined) return text.split(' ').map(Number)
      await changed
    }
  } finally {
    watcher.close()
  }
}

/** True while a process of this pid lives; a zombie that nobody has waited for does not count. */
export const isRunning = async (pid: number): Promise<boolean> => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (stat === undefined) return process.platform !== 'linux'
  return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
}

/** Waits until a process that is no child of ours is gone (no event tells); fails after 2 s. */
export const waitForProcessExit = async (pid: number): Promise<void> => {
  const last = performance.now() + 2000
  while (await isRunning(pid)) {
    assert.ok(performance.now() < last, `process ${pid} still runs`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
