import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'

/** Throws the system error, EMFILE or ENFILE, unless so many more files can be opened. */
export const needFiles = (count: number): void => {
  const opened: number[] = []
  try {
    while (opened.length < count) opened.push(openSync(devNull, 'r'))
  } finally {
    for (const file of opened) closeSync(file)
  }
}
