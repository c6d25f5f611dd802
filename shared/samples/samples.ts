import { readdirSync, readFileSync } from 'node:fs'
import { DoorwardError } from '../errors.ts'
import { didYouMean } from '../text.ts'
import { packageFolder } from '../version.ts'

/*
 * The built-in payloads of senders, in `assets/samples`.
 */

/** Those whose samples are whole payloads; of other senders there is a short one each. */
const sampleSenders = ['github', 'slack', 'stripe'] as const
type SampleSender = (typeof sampleSenders)[number]

/** A built-in payload with the event name of the sender's header. */
export type Sample = {
  readonly sender: string
  readonly event: string
  readonly contentType: string
  readonly body: Buffer
}

const folder = new URL('assets/samples/', packageFolder)

const contentTypes = {
  '.json': 'application/json',
  '.form': 'application/x-www-form-urlencoded',
} as const
type Ending = keyof typeof contentTypes
const endings = Object.keys(contentTypes) as Ending[]

type Known = { readonly sender: SampleSender; readonly name: string; readonly ending: Ending }

const samplesOf = (sender: SampleSender): Known[] =>
  readdirSync(new URL(`${sender}/`, folder))
    .toSorted()
    .flatMap((file): Known[] => {
      const ending = endings.find((candidate) => file.endsWith(candidate))
      return ending ? [{ sender, name: file.slice(0, -ending.length), ending }] : []
    })

const readBody = ({ sender, name, ending }: Known): Buffer =>
  readFileSync(new URL(`${sender}/${name}${ending}`, folder))

const fullName = ({ sender, name }: Known): string => `${sender}:${name}`

/** The names of the built-in payloads, sorted: `github:pull_request.opened`. */
export const sampleNames = (): string[] =>
  [
    ...sampleSenders.flatMap(samplesOf).map(fullName),
    ...Object.entries(readShort()).flatMap(([sender, events]) =>
      Object.keys(events).map((event) => `${sender}:${event}`),
    ),
  ].toSorted()

/** By sender and event a payload with the fields that its documents name first. */
const readShort = (): Readonly<Record<string, Readonly<Record<string, unknown>>>> =>
  JSON.parse(
    readFileSync(new URL('assets/sender-samples.json', packageFolder), 'utf8'),
  ) as Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** The name of the short sample of a sender. */
export const findShortSample = (sender: string): string | undefined => {
  const all = readShort()
  const [event] = Object.hasOwn(all, sender) ? Object.keys(all[sender] ?? {}) : []
  return event && `${sender}:${event}`
}

const findShort = (wanted: string): Sample | undefined => {
  const [sender = '', event = ''] = wanted.split(/:(.*)/s)
  const all = readShort()
  const events = Object.hasOwn(all, sender) ? all[sender] : undefined
  if (!events || !Object.hasOwn(events, event)) return undefined
  const body = Buffer.from(JSON.stringify(events[event], null, 2))
  return { sender, event, contentType: 'application/json', body }
}

/** The nearest sample name; `wanted` may lack its sender, or be only the start of a name. */
const nearestSample = (wanted: string, names: readonly string[]): string | undefined => {
  const begun = names.filter((name) =>
    ['', ...sampleSenders.map((sender) => `${sender}:`)].some((from) =>
      name.startsWith(`${from}${wanted}.`),
    ),
  )
  if (begun.length > 0) return `did you mean ${begun.map((name) => `"${name}"`).join(' or ')}?`
  return (
    didYouMean(wanted, names) ??
    sampleSenders.map((sender) => didYouMean(`${sender}:${wanted}`, names)).find(Boolean)
  )
}

/** Reads a built-in payload. Throws `usage` with the nearest name for one that does not exist. */
export const readSample = (wanted: string): Sample => {
  const sample = sampleSenders.flatMap(samplesOf).find((known) => fullName(known) === wanted)
  const short = findShort(wanted)
  if (short) return short
  if (!sample)
    throw new DoorwardError('usage', `there is no sample "${wanted}"`, {
      hint: nearestSample(wanted, sampleNames()) ?? 'doorward webhook send --sample lists them',
    })
  const { sender, name, ending } = sample
  const [event = name] = name.split('.')
  return { sender, event, contentType: contentTypes[ending], body: readBody(sample) }
}

/** A built-in payload as a rule reads it, with the first part of its event's name: `pull_request`, `invoice`. */
export type SamplePayload = { readonly event: string; readonly payload: unknown }

/** All payloads of a sender; none of one without samples, or while an update replaces the files. */
export const readPayloads = (sender: string): SamplePayload[] => {
  const known = sampleSenders.find((name) => name === sender)
  if (!known) return []
  try {
    return samplesOf(known).map((sample) => ({
      event: sample.name.split('.')[0] ?? sample.name,
      payload: parseBody(sample.ending, readBody(sample).toString('utf8')),
    }))
  } catch {
    return []
  }
}

/** The fields of a form, or the JSON in its one field `payload`. */
const parseBody = (ending: Ending, text: string): unknown => {
  if (ending === '.json') return JSON.parse(text)
  const form = new URLSearchParams(text)
  const inside = form.get('payload')
  return inside === null ? Object.fromEntries(form) : JSON.parse(inside)
}
