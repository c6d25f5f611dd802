import type { CatchUpRequest, MissedHook } from '../../shared/api-missed.ts'
import type { Client } from '../../shared/client/client.ts'
import { missedButtons, type Note, toBody, toTitle } from '../notifications/note.ts'

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
    title: toTitle(lines.length === 0 ? 'nothing was missed' : 'missed deliveries'),
    body: toBody(
      [...lines.slice(0, mostShown), ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
    ),
    ...(lines.length > 0 && { buttons: [missedButtons.run, missedButtons.skip] }),
  })
}

export const decideMissed = async (client: Client, what: CatchUpRequest['do']): Promise<void> => {
  await client.post('/events/missed', { do: what }, { timeoutMs: limitMs })
}
