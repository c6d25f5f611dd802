import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { CatchUpRequest, MissedHook } from '../../shared/api/hooks.ts'
import type { EventDetail, EventLink } from '../../shared/api/api.ts'
import type { Client } from '../../shared/client/client.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import { packageFolder } from '../../shared/version.ts'
import { missedButtons, type Note, toBody, toResultNote } from '../notifications/note.ts'
import { providerTitle, upperFirst } from '../wording.ts'

/** A program that still runs after this shows something; a browser never exits. */
const patienceMs = 4000

/**
 * Shows a file, folder or page in the program that the desktop has for it. Returns false if there is
 * none, which only the exit code of the opener shows.
 */
export const openPath = async (path: string): Promise<boolean> => {
  try {
    const { default: open } = await import('open')
    const child: ChildProcess = await open(path)
    if (child.exitCode !== null) return child.exitCode === 0
    const signal = AbortSignal.timeout(patienceMs)
    const [code] = (await once(child, 'exit', { signal })) as [number | null]
    return code === 0 || code === null
  } catch (error) {
    return error instanceof Error && error.name === 'AbortError'
  }
}

/** The page on how to get an OAuth client; made by scripts/draw-guide.mjs. */
export const guidePage = fileURLToPath(new URL('assets/guide/providers.html', packageFolder))

/** Opens the page, and shows the hint as well: a sandboxed browser may not be allowed to read the file. */
export const openGuide = async (
  provider: string | undefined,
  hint: string | undefined,
  show: (note: Note) => void,
): Promise<void> => {
  const isOpen = await openPath(guidePage)
  if (isOpen && hint === undefined) return
  const name = provider === undefined ? 'a login' : providerTitle(provider)
  show({
    subject: `${name} needs an OAuth client`,
    body: toBody([upperFirst(hint ?? ''), isOpen ? '' : guidePage].join('\n')),
  })
}

/**
 * Shows an event on a page of the daemon, by a link that works once. Without a browser, or with a daemon
 * that has no such page, shows its result as a note. Throws `event-not-found`.
 */
export const showEvent = async (
  client: Client,
  id: string,
  show: (note: Note) => void,
): Promise<void> => {
  const path = `/events/${encodeURIComponent(id)}`
  const url = await createLink(client, path)
  if (url !== undefined && (await openPath(url))) return
  show(toResultNote(await client.get<EventDetail>(path)))
}

const createLink = async (client: Client, path: string): Promise<string | undefined> => {
  try {
    const { url } = await client.post<EventLink>(`${path}/link`)
    return isSafeToOpen(url) ? url : undefined
  } catch (error) {
    // A daemon of an earlier version has no pages.
    const codes = ['not-found', 'method-not-allowed']
    if (error instanceof DoorwardError && codes.includes(error.code)) return undefined
    throw error
  }
}

/** Opens the page of doorward. */
export const openDoorward = async (client: Client, show: (note: Note) => void): Promise<void> => {
  const { url } = await client.post<EventLink>('/ui/link', {})
  if (isSafeToOpen(url) && (await openPath(url))) return
  show({ subject: 'no browser opens here', body: toBody('Run in a terminal: doorward open') })
}

/** A sender is asked for each of them. */
const limitMs = 5 * 60_000
const mostShown = 5

/** Shows what did not arrive, with what can be done about it. */
export const showMissed = async (client: Client, show: (note: Note) => void): Promise<void> => {
  const { hooks } = await client.get<{ hooks: MissedHook[] }>('/events/missed')
  const lines = hooks.flatMap(({ repository, waiting }) =>
    waiting.map(({ event }) => `${repository}: ${event}`),
  )
  const more = lines.length - mostShown
  show({
    subject: lines.length === 0 ? 'nothing was missed' : 'missed deliveries',
    body: toBody(
      [...lines.slice(0, mostShown), ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
    ),
    ...(lines.length > 0 && { buttons: [missedButtons.run, missedButtons.skip] }),
  })
}

export const decideMissed = async (client: Client, what: CatchUpRequest['do']): Promise<void> => {
  await client.post('/events/missed', { do: what }, { timeoutMs: limitMs })
}
