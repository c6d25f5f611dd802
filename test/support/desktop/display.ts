import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { firstLine } from './session-bus.ts'

const numbersEach = 16
let started = 0

/**
 * A number for a display, of a row that only this process uses. The lowest free one, which Xvfb would
 * take by itself, becomes another test run's as soon as a display ends: a tray that should find its
 * desktop gone would find that one.
 */
const nextNumber = (): number => {
  started += 1
  return 1000 + (process.pid % 3300) * numbersEach + (started % numbersEach)
}

/** Starts a virtual display and resolves with its name, `:1042`; the child is added before it is up. */
export const startDisplay = async (
  children: ChildProcess[],
  more: readonly string[] = [],
): Promise<string> => {
  const options = '-displayfd 3 -screen 0 640x480x24 -nolisten tcp -noreset'.split(' ')
  const child = spawn('Xvfb', [`:${nextNumber()}`, ...options, ...more], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  children.push(child)
  return `:${await firstLine(child, child.stdio[3] as Readable, 'Xvfb')}`
}
