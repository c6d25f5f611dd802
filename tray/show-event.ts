import type { EventDetail, EventLink } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { isSafeToOpen } from '../shared/net.ts'
import { type Note, resultNoteOf } from './note.ts'
import { openPath } from './open-path.ts'
import { isUnknownRoute } from './unknown-route.ts'

/**
 * Shows an event on a page of the daemon, by a link that works once. Without a browser, or with a daemon
 * that has no such page, its result becomes a note. Throws `event-not-found` when it is forgotten.
 */
export const showEvent = async (
  client: Client,
  id: string,
  show: (note: Note) => void,
): Promise<void> => {
  const path = `/events/${encodeURIComponent(id)}`
  const url = await linkTo(client, path)
  if (url !== undefined && (await openPath(url))) return
  show(resultNoteOf(await client.get<EventDetail>(path)))
}

const linkTo = async (client: Client, path: string): Promise<string | undefined> => {
  try {
    const { url } = await client.post<EventLink>(`${path}/link`)
    return isSafeToOpen(url) ? url : undefined
  } catch (error) {
    if (isUnknownRoute(error)) return undefined
    throw error
  }
}
