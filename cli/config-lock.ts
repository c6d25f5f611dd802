import { setTimeout } from 'node:timers/promises'
import { DoorwardError } from '../shared/errors.ts'
import { type Home, prepareHome } from '../shared/home/home.ts'
import { lockHome } from '../shared/home/lock.ts'

const tries = 200
const pauseMs = 50

/**
 * Reads and writes the configuration as the only command that does: of two that add something at the same
 * time the slower would write back what the quicker had not added yet. Waits for another one for 10 s;
 * throws `already-running` with its pid then, and as `prepareHome` does.
 */
export const withConfigLock = async <Value>(
  home: Home,
  work: () => Promise<Value>,
): Promise<Value> => {
  await prepareHome(home)
  const letGo = await lockConfig(home, tries)
  try {
    return await work()
  } finally {
    await letGo()
  }
}

const lockConfig = async (home: Home, left: number): Promise<() => Promise<void>> => {
  try {
    return await lockHome(home, 'config')
  } catch (error) {
    const isHeld = error instanceof DoorwardError && error.code === 'already-running'
    if (!isHeld || left === 0) throw error
  }
  await setTimeout(pauseMs)
  return lockConfig(home, left - 1)
}
