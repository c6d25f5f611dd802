import { z } from 'zod'
import { type Fence, fenceAfter } from '../../util/markdown-fence.ts'
import { parseJson } from '../../util/payload-path.ts'

/** An answer in which the agent wrote something for a program. */
type AnswerWithBlock = {
  /** The answer without the block; the whole answer without a block that can be read. */
  readonly text: string
  /** The value of the block; undefined without one. */
  readonly value: unknown
  /** True for a block that seems to be meant, and is not JSON. */
  readonly isUnreadable: boolean
}

/**
 * Takes the last fenced block of JSON that has this key out of an answer. A block whose end is missing
 * continues to the end of the answer.
 */
export const takeJsonBlock = (answer: string, key: string): AnswerWithBlock => {
  const lines = answer.split('\n')
  let block: { readonly from: number; readonly to: number; readonly json: string } | undefined
  let fence: Fence | undefined
  let from = 0
  for (const [index, line] of [...lines, undefined].entries()) {
    const after = line === undefined ? undefined : fenceAfter(line, fence)
    if (!fence && after) from = index
    if (fence && !after) {
      const json = lines.slice(from + 1, index).join('\n')
      if (/^(json)?$/i.test(fence.language) && json.includes(`"${key}"`))
        block = { from, to: index, json }
    }
    fence = after
  }
  if (!block) return { text: answer, value: undefined, isUnreadable: false }
  const value = parseJson(block.json)
  if (value === undefined) return { text: answer, value, isUnreadable: true }
  const rest = [...lines.slice(0, block.from), ...lines.slice(block.to + 1)]
  return { text: rest.join('\n').trim(), value, isUnreadable: false }
}

/** A comment on a line of a diff, as the agent wrote it. */
export type LineComment = {
  readonly path: string
  /** A line of the new file for `RIGHT`, of the old one for `LEFT`. Undefined when it cannot be read. */
  readonly line?: number | undefined
  readonly side: 'LEFT' | 'RIGHT'
  readonly body: string
}

/** A comment on a line that its diff has. */
export type PlacedComment = LineComment & { readonly line: number }

const block = z.object({
  comments: z.array(
    z.object({
      path: z.string(),
      line: z.coerce.number().int().positive().optional().catch(undefined),
      side: z
        .string()
        .transform((side) => side.toUpperCase())
        .pipe(z.enum(['LEFT', 'RIGHT']))
        .catch('RIGHT'),
      body: z.string(),
    }),
  ),
})

type Review = {
  readonly text: string
  readonly comments: readonly LineComment[]
  /** For the event. */
  readonly note?: string
}

/** Reads `{"comments": [{"path", "line", "side", "body"}]}` in a fenced block of an answer. */
export const parseReview = (answer: string): Review => {
  const { text, value, isUnreadable } = takeJsonBlock(answer, 'comments')
  const found = value === undefined ? undefined : block.safeParse(value)
  if (found?.success) return { text, comments: found.data.comments }
  if (!found && !isUnreadable) return { text: answer, comments: [] }
  return {
    text: answer,
    comments: [],
    note: 'the block of comments cannot be read: it is in the text of the review',
  }
}

/** GitHub refuses large reviews, and no one reads them. */
const maxComments = 100

/** Splits comments into those on a line that a diff shows, and the others. `patches` has a diff for each path. */
export const placeComments = (
  comments: readonly LineComment[],
  patches: ReadonlyMap<string, string>,
): { readonly placed: readonly PlacedComment[]; readonly others: readonly LineComment[] } => {
  const lines = new Map<string, ReadonlySet<string>>()
  const linesOf = (path: string): ReadonlySet<string> => {
    const known = lines.get(path) ?? listLines(patches.get(path) ?? '')
    lines.set(path, known)
    return known
  }
  const placed: PlacedComment[] = []
  const others: LineComment[] = []
  for (const comment of comments) {
    const { path, line, side } = comment
    const isShown = line !== undefined && linesOf(path).has(`${side} ${line}`)
    if (isShown && placed.length < maxComments) placed.push({ ...comment, line })
    else others.push(comment)
  }
  return { placed, others }
}

/** The lines that a unified diff of one file shows, as `RIGHT 12`: comments fit on these. */
export const listLines = (patch: string): ReadonlySet<string> => {
  const lines = new Set<string>()
  let left = 0
  let right = 0
  for (const line of patch.split('\n')) {
    const [, from, to] = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line) ?? []
    if (from !== undefined && to !== undefined) [left, right] = [Number(from), Number(to)]
    else if (line.startsWith('-')) lines.add(`LEFT ${left++}`)
    else if (line.startsWith('+')) lines.add(`RIGHT ${right++}`)
    else if (line.startsWith(' ')) lines.add(`LEFT ${left++}`).add(`RIGHT ${right++}`)
  }
  return lines
}

/** Comments as a part of a text, each under its path and line. */
export const describeComments = (comments: readonly LineComment[]): string =>
  comments
    .map(({ path, line, body }) => {
      const place = `\`${path.replaceAll(/[`\p{C}\p{Zl}\p{Zp}]/gu, ' ')}\``
      return `${place}${line === undefined ? '' : `, line ${line}`}:\n\n${body}`
    })
    .join('\n\n')
