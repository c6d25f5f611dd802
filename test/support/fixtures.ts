import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** The argv that runs a program of `test/fixtures/agents` by this Node. */
export const fixtureAgent = (name: string, ...args: readonly string[]): string[] => [
  process.execPath,
  fileURLToPath(new URL(`../../../test/fixtures/agents/${name}.mjs`, import.meta.url)),
  ...args,
]

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
