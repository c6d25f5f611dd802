import type { PastEvent } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Client } from '../../../shared/client/client.ts'
import { isReload } from '../../../shared/event-stages.ts'
import { didYouMean } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { type EventFilter, eventLines, parseState } from './format.ts'
import { knownWebhook } from '../../daemon-client/webhooks.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'

const commands = [
  'show',
  'open',
  'retry',
  'missed',
  'cancel',
  'approve',
  'reject',
  'again',
  'deliver',
]

export type EventsOptions = {
  readonly follow?: boolean
  readonly webhook?: string
  readonly state?: string
  readonly since?: string
  readonly rule?: string
  readonly search?: string
  readonly limit: number
  readonly all?: boolean
}

/** Prints the events, newest first, or follows them. */
export const listEvents = async (
  context: Context,
  [command]: (string | undefined)[],
  options: EventsOptions,
): Promise<void> => {
  if (command !== undefined && /^evt_\w+$/.test(command))
    throw new DoorwardError('usage', `${command} is the id of an event, not a command`, {
      hint: `doorward events show ${command}`,
    })
  if (command !== undefined)
    throw new DoorwardError('usage', `unknown command 'events ${command}'`, {
      hint: didYouMean(command, commands) ?? 'doorward events --help',
    })
  const { terminal } = context
  const state = options.state === undefined ? undefined : parseState(options.state)
  const choose = async (client: Client): Promise<EventFilter> => ({
    state,
    webhook:
      options.webhook === undefined
        ? undefined
        : await knownWebhook(client, options.webhook, terminal),
  })
  if (options.follow) {
    const { followEvents } = await import('./follow.ts')
    return followEvents(context, choose)
  }
  const answer = await withDaemon(context, async (client) => {
    const { webhook } = await choose(client)
    const { since, rule, search } = options
    const query = { webhook, state, since, rule, q: search }
    const fetch = async (limit: number) => fetchPages(client, query, limit)
    return options.all || terminal.json
      ? fetch(options.limit)
      : fetchWithoutReloads(fetch, options.limit)
  })
  if (terminal.json) return terminal.printJson(answer)
  const { folded = 0, damaged = 0 } = answer
  if (folded > 0)
    terminal.say(
      `not shown: ${folded} ${folded === 1 ? 'reload' : 'reloads'} of the configuration (--all)`,
    )
  if (answer.events.length === 0)
    return terminal.say(isFiltered(options) ? 'no such event' : 'no events yet')
  const shape = { columns: terminal.columns, header: true }
  for (const line of eventLines(answer.events, new Date(), terminal.paint, shape))
    terminal.print(line)
  if (damaged > 0) terminal.say(`not shown: ${damaged} damaged lines of the history`)
}

const isFiltered = ({ webhook, state, since, rule, search }: EventsOptions): boolean =>
  [webhook, state, since, rule, search].some((value) => value !== undefined)

type Page = {
  readonly events: PastEvent[]
  readonly cursor?: string
  readonly damaged?: number
}
type Listing = {
  readonly events: PastEvent[]
  readonly damaged?: number
  /** Reloads of the configuration that are left out. */
  readonly folded?: number
}

/** A search through a long history answers in several pages, and some may be empty. */
const fetchPages = async (
  client: Client,
  filter: Readonly<Record<string, string | undefined>>,
  limit: number,
): Promise<Listing> => {
  const events: PastEvent[] = []
  let damaged = 0
  for (let cursor: string | undefined; ;) {
    const query = new URLSearchParams({ limit: String(limit - events.length) })
    for (const [name, value] of Object.entries({ ...filter, cursor }))
      if (value !== undefined) query.set(name, value)
    const page = await client.get<Page>(`/events?${query.toString()}`)
    events.push(...page.events)
    damaged += page.damaged ?? 0
    cursor = page.cursor
    if (cursor === undefined || events.length >= limit)
      return { events, ...(damaged > 0 && { damaged }) }
  }
}

/** Fetches the newest events that are no reloads, and counts the reloads among them. */
const fetchWithoutReloads = async (
  fetch: (limit: number) => Promise<Listing>,
  limit: number,
): Promise<Listing> => {
  for (let asked = limit; ; asked = Math.min(asked * 4, mostEvents)) {
    const { events, ...more } = await fetch(asked)
    const shown = events.filter((event) => !isReload(event)).slice(0, limit)
    const isWhole = events.length < asked || asked >= mostEvents
    if (shown.length < limit && !isWhole) continue
    const last =
      shown.length < limit ? events.length : events.indexOf(shown[limit - 1] as PastEvent) + 1
    return { events: shown, folded: last - shown.length, ...more }
  }
}

/** The daemon takes no larger number. */
const mostEvents = 999_999
