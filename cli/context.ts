import { DoorwardError } from '../shared/errors.ts'
import { type Home, resolveHome } from '../shared/home/home.ts'
import { getUserAgent } from '../shared/version.ts'
import { type Terminal, openTerminal } from './terminal/terminal.ts'

/** The options that every command takes, as the argument parser gives them. */
export type GlobalOptions = {
  readonly home?: string
  readonly json?: boolean
  readonly quiet?: boolean
  readonly color: boolean
  readonly start: boolean
}

/** Every command gets this besides its own arguments. */
export type Context = {
  readonly home: Home
  readonly terminal: Terminal
  /** Whether a daemon that does not run is started. */
  readonly start: boolean
  /** Who asks, as every request says it. */
  readonly userAgent: string
}

/** What it takes to ask the daemon; with a terminal, to be told that it is of another version. */
export type Asker = Pick<Context, 'home' | 'userAgent'> & Partial<Pick<Context, 'terminal'>>

/**
 * The context of a command by its words (`oauth list`). Throws `home-unusable` when no home folder can
 * be named, `usage` for an empty name.
 */
export const createContext = (options: GlobalOptions, command: string): Context => {
  // An empty name would mean the current folder: most likely a variable that is not set.
  if (options.home === '') throw new DoorwardError('usage', '--home names no folder')
  return {
    home: resolveHome(options.home),
    start: options.start,
    userAgent: getUserAgent('cli', command),
    terminal: openTerminal({
      json: options.json ?? false,
      quiet: options.quiet ?? false,
      color: options.color,
    }),
  }
}
