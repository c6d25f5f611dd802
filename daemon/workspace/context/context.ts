import type { RunInput } from '../../../shared/api/api.ts'
import type { ContextName } from '../../../shared/templates.ts'
import { type ContextRequest, fence, placeOfContext } from '../../webhook/prompt.ts'
import { readCommits, readDiff, readFiles } from './changes.ts'
import { readComments, readFailedLogs } from './discussion.ts'
import { readReviews } from './reviews.ts'
import type { AskSource, Context, ContextSource } from './source.ts'
import { showHidden } from './source.ts'

/*
 * Contexts describe the code in a prompt: a prompt is made when its event arrives, and has a place for each context
 * until the workspace is there.
 */

type Prompted = {
  readonly prompt: string
  readonly context?: ContextRequest | undefined
}

const readers: Readonly<Record<ContextName, (source: ContextSource) => Promise<Context>>> = {
  diff: readDiff,
  files: readFiles,
  commits: readCommits,
  'failed-logs': readFailedLogs,
  comments: readComments,
  reviews: readReviews,
}

type Filled = {
  readonly prompt: string
  readonly contexts: NonNullable<RunInput['context']>
  readonly notes: readonly string[]
  readonly notRead: readonly string[]
}

/** The prompt of an event with its contexts in their places. Throws `workspace-…`. */
export const fillContexts = async (
  { prompt, context }: Prompted,
  workspace: ContextSource['workspace'],
  github: AskSource,
  marksAt?: ContextSource['marksAt'],
): Promise<Filled> => {
  if (!context) return { prompt, contexts: [], notes: [], notRead: [] }
  const { id, isFenced, names, limitBytes, about } = context
  const show = isFenced ? showHidden : (text: string) => text
  const source = { workspace, github, about, limitBytes, show, marksAt }
  let filled = prompt
  const contexts: Filled['contexts'] = []
  const notRead: string[] = []
  // The text of one cannot have the place of another: nothing in it knows the id.
  for (const name of names) {
    const place = placeOfContext(name, id)
    if (!filled.includes(place)) continue
    const { text, note, notRead: files = [] } = await readers[name](source)
    // Fenced like JSON: text between the marks of a comment is code, and stays.
    const shown = isFenced ? fence(text, id, undefined, true) : text
    filled = filled.replaceAll(place, () => shown)
    notRead.push(...files)
    contexts.push({ name, bytes: Buffer.byteLength(shown), leftOut: note ?? null })
  }
  const notes = contexts.flatMap(({ leftOut }) => leftOut ?? [])
  return { prompt: filled, contexts, notes, notRead }
}
