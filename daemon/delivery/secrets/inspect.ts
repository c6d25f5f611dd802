import type { AllowedKind } from '../../../shared/secret-kinds.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Git } from '../../workspace/git.ts'
import type { SeenCode } from '../sender.ts'
import { type ChangeTexts, readChangeTexts } from './change.ts'
import type { HeldSecret } from './held.ts'
import { findSecrets, type FoundSecret, hideFound, Needles } from './search.ts'

/*
 * The last look before anything leaves this machine: the answer of an agent, and the change that a target would
 * publish, are searched for secrets. With one nothing is sent, and its place is told without its value.
 */

/** What is about to leave. */
export type Leaving = {
  readonly eventId: string
  readonly text: string
  /** What the owner is told beside it: notes of the run, which can name files. */
  readonly detail?: string | undefined
  readonly change?: SeenCode['change']
  /** Kinds that the rule allows. */
  readonly allowed?: readonly AllowedKind[] | undefined
  readonly signal: AbortSignal
}

/** The same texts, without secrets, and what was found. */
export type Inspected = {
  readonly text: string
  readonly detail: string
  /** `answer-has-secret`; undefined where everything may leave. */
  readonly refusal: DoorwardError | undefined
}

export type Inspect = (leaving: Leaving) => Promise<Inspected>

export type InspectParts = {
  readonly git: Git
  /** The values that the configuration uses as secrets. */
  readonly configured: readonly HeldSecret[]
  /** Tokens, clients and keys that the daemon has now. */
  readonly held: () => Promise<readonly HeldSecret[]>
}

type Place = FoundSecret & { readonly where: string }

export const createInspect = ({ git, configured, held }: InspectParts): Inspect => {
  let last: { readonly of: readonly HeldSecret[]; readonly needles: Needles } | undefined
  const findNeedles = async (): Promise<Needles> => {
    const now = await held()
    if (last?.of !== now) last = { of: now, needles: new Needles([...configured, ...now]) }
    return last.needles
  }
  return async ({ eventId, text, detail = '', change, allowed = [], signal }) => {
    const needles = await findNeedles()
    const now = Date.now()
    const find = async (searched: string) => findSecrets(searched, needles, now, allowed)
    const inAnswer = await find(text)
    const inDetail = await find(detail)
    const changed =
      typeof change === 'object' ? await readChangeTexts(git, change, signal) : undefined
    const inChange = changed ? await findInChange(changed, find) : []
    const clean = {
      text: await hide(text, inAnswer, find),
      detail: await hide(detail, inDetail, find),
    }
    const places = [
      ...inAnswer.map((hit) => ({
        ...hit,
        where: `line ${lineOf(text, hit.start)} of the answer`,
      })),
      ...inChange,
    ]
    if (places.length === 0) return { ...clean, refusal: undefined }
    // The commit with the secret cannot be pushed by a later attempt.
    if (typeof change === 'object')
      await git(['update-ref', '-d', change.ref], {
        cwd: change.gitDir,
        gitDir: change.gitDir,
        signal,
      }).catch(() => undefined)
    return { ...clean, refusal: toRefusal(places, eventId) }
  }
}

type Find = (text: string) => Promise<readonly FoundSecret[]>

const findInChange = async (
  { message, names, files }: ChangeTexts,
  find: Find,
): Promise<Place[]> => {
  const places: Place[] = []
  const add = (found: readonly FoundSecret[], where: (hit: FoundSecret) => string) =>
    places.push(...found.map((hit) => ({ ...hit, where: where(hit) })))
  add(await find(message), () => 'the message of the commit')
  add(await find(names), () => 'the name of a changed file')
  for (const { name, text, numbers } of files) {
    const shown = toPlainLine(hideFound(name, await find(name))).slice(0, 100)
    add(
      await find(text),
      ({ start }) => `line ${numbers[lineOf(text, start) - 1] ?? 1} of ${shown}`,
    )
  }
  return places
}

/** Looks again, as two values may have overlapped; what cannot be made clean is hidden as a whole. */
const hide = async (text: string, found: readonly FoundSecret[], find: Find): Promise<string> => {
  const [first] = found
  if (!first) return text
  const clean = hideFound(text, found)
  return (await find(clean)).length === 0 ? clean : `[secret: ${first.kind}]`
}

const lineOf = (text: string, index: number): number => {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1))
    line += 1
  return line
}

const maxNamed = 5

const toRefusal = (places: readonly Place[], eventId: string): DoorwardError => {
  const told = [...new Set(places.map(({ kind, name, where }) => `${name} (${kind}) in ${where}`))]
  const more = told.length > maxNamed ? `; and ${told.length - maxNamed} more` : ''
  const kinds = [...new Set(places.map(({ kind }) => kind))].join(', ')
  return new DoorwardError(
    'answer-has-secret',
    `the answer has a secret: ${kinds}; nothing was sent`,
    {
      localDetail: `nothing was sent, as the agent answered with a secret: ${told.slice(0, maxNamed).join('; ')}${more}`,
      hint: `doorward events retry ${eventId} runs the agent again; allow_secrets of the rule allows a kind`,
    },
  )
}
