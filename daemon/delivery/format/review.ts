import { z } from 'zod'
import { type JsonBlock, readObjects, takeJsonBlocks } from './json-blocks.ts'

/** A comment on lines of a diff, as the agent wrote it. */
export type LineComment = {
  readonly path: string
  /** A line of the new file for `RIGHT`, of the old one for `LEFT`. Undefined when it cannot be read. */
  readonly line?: number | undefined
  readonly side: Side
  /** The first of several lines, where `line` is the last one; 0 when it cannot be read. */
  readonly startLine?: number
  readonly startSide?: Side
  readonly body: string
}

export type Side = 'LEFT' | 'RIGHT'

const lineNumber = z.coerce.number().int().positive()
const sideName = z
  .string()
  .transform((side) => side.toUpperCase())
  .pipe(z.enum(['LEFT', 'RIGHT']))

const commentSchema = z.object({
  path: z.string().regex(/\S/),
  line: lineNumber.optional().catch(undefined),
  side: sideName.catch('RIGHT'),
  start_line: z.preprocess((value) => value ?? undefined, lineNumber.optional().catch(0)),
  start_side: sideName.optional().catch(undefined),
  body: z.string().regex(/\S/),
})

const conclusions = ['success', 'failure', 'neutral'] as const
const verdictSchema = z.object({ conclusion: z.enum(conclusions) })

type ParsedAnswer = {
  /** The answer without its blocks. */
  readonly text: string
  readonly comments: readonly LineComment[]
  /** The verdict of a check. */
  readonly conclusion?: (typeof conclusions)[number]
  /** The other keys of its blocks: requests, with `outputs`. */
  readonly others?: Readonly<Record<string, unknown>>
  /** For the event. */
  readonly note?: string
}

/**
 * Reads the blocks of an answer: `{"comments": [{"path", "line", "side", "start_line", "body"}]}`, or that list
 * alone, and `{"conclusion": "failure"}`.
 */
export const parseAnswer = (answer: string): ParsedAnswer => {
  const { text, values } = takeJsonBlocks(answer, (block) => {
    const items = findItems(block)
    const verdict = verdictSchema.safeParse(block.value).data
    return items || verdict
      ? { items: items ?? [], ...verdict, others: othersIn(block.value) }
      : undefined
  })
  const items = values.flatMap((one) => one.items)
  const comments = items.flatMap((item) => parseComment(item) ?? [])
  const bad = items.length - comments.length
  const conclusion = values.findLast((one) => one.conclusion !== undefined)?.conclusion
  const others = Object.assign({}, ...values.map((one) => one.others)) as Record<string, unknown>
  return {
    // Some models write an empty list where they have no comment.
    text: text.trim() === '[]' ? '' : text,
    comments,
    ...(conclusion && { conclusion }),
    ...(Object.keys(others).length > 0 && { others }),
    ...(bad > 0 && { note: `${bad} of ${items.length} comments cannot be read: left out` }),
  }
}

const othersIn = (value: unknown): object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value).filter(([key]) => key !== 'comments' && key !== 'conclusion'),
      )
    : {}

// How a list of comments begins that is damaged or cut.
const damaged = /^(?:\{\s*"comments"\s*:|\[\s*\{\s*"(?:path|line|side|start_line|start_side|body)")/

/** The comments of a block; undefined for a block of something else. */
const findItems = ({ value, source, isFenced }: JsonBlock): readonly unknown[] | undefined => {
  if (value === undefined) {
    if (!damaged.test(source) && !(isFenced && source.includes('"comments"'))) return undefined
    const objects = readObjects(source)
    return objects.length > 0 ? objects : [undefined]
  }
  if (Array.isArray(value)) return value.some(parseComment) ? value : undefined
  if (typeof value !== 'object' || value === null || !('comments' in value)) return undefined
  return Array.isArray(value.comments) ? value.comments : [value.comments]
}

const parseComment = (item: unknown): LineComment | undefined => {
  const { data } = commentSchema.safeParse(item)
  if (!data) return undefined
  const { start_line: startLine, start_side: startSide = data.side, ...rest } = data
  return { ...rest, ...(startLine !== undefined && { startLine, startSide }) }
}
