import { readFileSync } from 'node:fs'

/**
 * True while our process group is the one that the terminal sends its keys' signals to, so that a
 * SIGINT has reached the other processes of the group as well.
 */
export const isForeground = (): boolean => {
  try {
    // proc(5): after the name come state, parent, group, session, terminal, foreground group.
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[4] !== '0' && fields[2] === fields[5]
  } catch {
    // Where the system does not tell: most likely so when a person looks at the output.
    return process.stdout.isTTY || process.stderr.isTTY
  }
}
