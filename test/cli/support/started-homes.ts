import type { Home } from '../../../shared/home/home.ts'
import { temporaryHome } from '../../support/temporary.ts'
import { run, stopStarted } from './cli.ts'

/** What `daemon start --json` and `daemon status --json` say. */
export type Running = { running: boolean; pid: number; url: string }

/** New homes for the tests of a `describe`, in which it is called, and daemons in them, which each test's end stops. */
export const startedHomes = () => {
  const homes: Home[] = []
  afterEach(async () => {
    for (const home of homes.splice(0)) await stopStarted(home)
  })
  const stopAtEnd = (home: Home): Home => {
    homes.push(home)
    return home
  }
  return {
    /** The same for a home that is there already. */
    stopAtEnd,
    newHome: async (...files: Parameters<typeof temporaryHome>): Promise<Home> =>
      stopAtEnd(await temporaryHome(...files)),
    startIn: async (home: Home, env: Record<string, string> = {}): Promise<Running> =>
      JSON.parse((await run(['daemon', 'start', '--json'], { home, env })).stdout) as Running,
  }
}
