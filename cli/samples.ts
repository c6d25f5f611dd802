import { readFile, readdir } from 'node:fs/promises'
import { DoorwardError } from '../shared/errors.ts'
import { nearest } from '../shared/text.ts'
import { packageFolder } from '../shared/version.ts'

export const sampleSenders = ['github', 'slack', 'stripe'] as const
export type SampleSender = (typeof sampleSenders)[number]

/** A built-in payload with the name of its event, as the sender's header says it. */
export type Sample = {
  readonly sender: SampleSender
  readonly event: string
  readonly contentType: string
  readonly body: Buffer
}

const folder = new URL('assets/samples/', packageFolder)

/** Kinds of files by what they end with. */
const contentTypes = {
  '.json': 'application/json',
  '.form': 'application/x-www-form-urlencoded',
} as const
type Ending = keyof typeof contentTypes
const endings = Object.keys(contentTypes) as Ending[]

type Known = { readonly sender: SampleSender; readonly name: string; readonly ending: Ending }

const knownSamples = async (): Promise<Known[]> => {
  const found = sampleSenders.map(async (sender) =>
    (await readdir(new URL(`${sender}/`, folder))).toSorted().flatMap((file): Known[] => {
      const ending = endings.find((candidate) => file.endsWith(candidate))
      return ending ? [{ sender, name: file.slice(0, -ending.length), ending }] : []
    }),
  )
  return (await Promise.all(found)).flat()
}

const fullName = ({ sender, name }: Known): string => `${sender}:${name}`

/** The names of the built-in payloads, sorted: `github:pull_request.opened`. */
export const sampleNames = async (): Promise<string[]> => (await knownSamples()).map(fullName)

/** The nearest name to one with or without its sender, or to the beginning of one. */
const nearestSample = (wanted: string, names: readonly string[]): string | undefined => {
  const begun = names.filter((name) =>
    ['', ...sampleSenders.map((sender) => `${sender}:`)].some((from) =>
      name.startsWith(`${from}${wanted}.`),
    ),
  )
  if (begun.length > 0) return `did you mean ${begun.map((name) => `"${name}"`).join(' or ')}?`
  return (
    nearest(wanted, names) ??
    sampleSenders.map((sender) => nearest(`${sender}:${wanted}`, names)).find(Boolean)
  )
}

/** Reads a built-in payload. Throws `usage` with the nearest name for one that does not exist. */
export const readSample = async (wanted: string): Promise<Sample> => {
  const samples = await knownSamples()
  const sample = samples.find((known) => fullName(known) === wanted)
  if (!sample) {
    const names = samples.map(fullName)
    throw new DoorwardError('usage', `there is no sample "${wanted}"`, {
      hint: nearestSample(wanted, names) ?? 'doorward webhook send --sample lists them',
    })
  }
  const { sender, name, ending } = sample
  return {
    sender,
    event: name.split('.')[0] ?? name,
    contentType: contentTypes[ending],
    body: await readFile(new URL(`${sender}/${name}${ending}`, folder)),
  }
}
