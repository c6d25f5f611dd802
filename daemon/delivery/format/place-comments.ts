import { withoutSuggestions } from './markdown-code.ts'
import { toCode } from './parts.ts'
import type { LineComment, Side } from './review.ts'

/** The server refuses large reviews, and no one reads them. */
const maxComments = 100

/** A line that a diff shows. */
type DiffLine = {
  /** Its hunk, and its place in the diff, from 0. */
  readonly hunk: number
  readonly place: number
  /** Its numbers in the old and in the new file. */
  readonly left: number | undefined
  readonly right: number | undefined
  /** Empty also where only the kind of the line is known. */
  readonly text: string
}

/** A comment on lines that its diff shows. */
export type PlacedComment = Omit<LineComment, 'startLine' | 'startSide'> & {
  readonly line: number
  readonly at: DiffLine
  /** The first of several lines. */
  readonly start?: { readonly line: number; readonly side: Side; readonly at: DiffLine }
}

/** Splits comments into those on lines that a diff shows, and the others. `patches` has a diff for each path. */
export const placeComments = (
  comments: readonly LineComment[],
  patches: ReadonlyMap<string, string>,
): { readonly placed: readonly PlacedComment[]; readonly others: readonly LineComment[] } => {
  const known = new Map<string, ReadonlyMap<string, DiffLine>>()
  const linesOf = (path: string): ReadonlyMap<string, DiffLine> => {
    const lines = known.get(path) ?? listLines(patches.get(path) ?? '')
    known.set(path, lines)
    return lines
  }
  const placed: PlacedComment[] = []
  const others: LineComment[] = []
  for (const comment of comments) {
    const path = toKnownPath(comment.path, patches)
    const found = place({ ...comment, path }, linesOf(path))
    if (found && placed.length < maxComments) placed.push(found)
    else others.push(comment)
  }
  return { placed, others }
}

/** The path without a prefix of git (`a/`, `b/`) or `./`, where only that file is changed. */
const toKnownPath = (path: string, patches: ReadonlyMap<string, string>): string => {
  const without = withoutPrefix(path)
  return !patches.has(path) && patches.has(without) ? without : path
}

export const withoutPrefix = (path: string): string => path.replace(/^(?:[ab]|\.)\//, '')

/**
 * Several lines have to be in one hunk. Otherwise the comment is on its last line, without a suggestion: that
 * would replace other lines than it was written for.
 */
const place = (
  comment: LineComment,
  lines: ReadonlyMap<string, DiffLine>,
): PlacedComment | undefined => {
  const { startLine, startSide = comment.side, ...rest } = comment
  const { line, side } = rest
  const at = line === undefined ? undefined : lines.get(`${side} ${line}`)
  if (line === undefined || !at) return undefined
  const one = { ...rest, line, at }
  if (startLine === undefined || (startLine === line && startSide === side)) return one
  const start = lines.get(`${startSide} ${startLine}`)
  if (start?.hunk !== at.hunk)
    return { ...one, body: `${describeLines(comment)}:\n\n${withoutSuggestions(rest.body)}` }
  const first = { line: startLine, side: startSide, at: start }
  return start.place <= at.place
    ? { ...one, start: first }
    : { ...one, ...first, start: { line, side, at } }
}

/** The lines that a unified diff of one file shows, by `RIGHT 12`: comments fit on these. */
export const listLines = (patch: string): ReadonlyMap<string, DiffLine> => {
  const lines = new Map<string, DiffLine>()
  let hunk = 0
  let left = 0
  let right = 0
  for (const [place, line] of patch.split('\n').entries()) {
    const [, from, to] = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line) ?? []
    if (from !== undefined && to !== undefined) {
      hunk += 1
      left = Number(from)
      right = Number(to)
      continue
    }
    const isLeft = /^[ -]/.test(line)
    const isRight = /^[ +]/.test(line)
    const at = {
      hunk,
      place,
      left: isLeft ? left : undefined,
      right: isRight ? right : undefined,
      text: line.slice(1),
    }
    if (isLeft) lines.set(`LEFT ${left++}`, at)
    if (isRight) lines.set(`RIGHT ${right++}`, at)
  }
  return lines
}

/** Comments as a part of a text, each under its path and lines. */
export const describeComments = (comments: readonly LineComment[]): string =>
  comments
    .map((comment) => {
      const path = toCode(comment.path)
      const lines = comment.line === undefined ? '' : `, ${describeLines(comment)}`
      return `${path}${lines}:\n\n${withoutSuggestions(comment.body)}`
    })
    .join('\n\n')

const describeLines = ({ line, startLine }: LineComment): string =>
  startLine ? `lines ${startLine} to ${line}` : `line ${line}`
