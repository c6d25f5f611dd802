import { existsSync } from 'node:fs'
import type { EventDetail } from '../shared/api.ts'
import { type Client, connect } from '../shared/client.ts'
import type { Home } from '../shared/home.ts'
import { userAgentOf } from '../shared/user-agent.ts'
import type { Action } from './action.ts'
import { type Note, bodyOf, resultNoteOf, titleOf } from './note.ts'
import { openPath } from './open-path.ts'

export type Surroundings = {
  readonly home: Home
  readonly show: (note: Note) => void
  readonly quit: () => void
}

/** Does what a clicked row asks for. Throws what the daemon or the desktop refuses. */
export const act = async (action: Action, { home, show, quit }: Surroundings): Promise<void> => {
  switch (action.do) {
    case 'show-event':
      return withDaemon(home, async (client) => {
        const event = await client.get<EventDetail>(`/events/${encodeURIComponent(action.id)}`)
        show(resultNoteOf(event))
      })
    case 'retry-event':
      return withDaemon(home, async (client) => {
        await client.post(`/events/${encodeURIComponent(action.id)}/retry`)
      })
    case 'open-configuration':
      return openOr(home.config, show)
    case 'open-logs':
      if (existsSync(home.log) && (await openPath(home.log))) return
      return openOr(home.logs, show)
    case 'explain':
      return show({ title: titleOf(action.title), body: bodyOf(action.body) })
    case 'quit':
      return quit()
    case 'login':
    case 'logout':
    case 'set-notifications':
    case 'set-start-at-login':
    case 'open-guide':
    case 'copy-diagnostics':
    case 'restart-daemon':
    case 'start-daemon':
      return
    case 'stop-and-quit':
      await withDaemon(home, async (client) => {
        await client.post('/daemon/shutdown')
      })
      return quit()
  }
}

const withDaemon = async (home: Home, use: (client: Client) => Promise<void>): Promise<void> => {
  const client = await connect(home, { userAgent: userAgentOf('tray') })
  try {
    await use(client)
  } finally {
    client.close()
  }
}

/** Where no program opens it, its path is the next best thing. */
const openOr = async (path: string, show: (note: Note) => void): Promise<void> => {
  if (!(await openPath(path)))
    show({ title: titleOf('no program here opens it'), body: bodyOf(path) })
}
