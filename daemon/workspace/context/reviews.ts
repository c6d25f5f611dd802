import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import type { Context, ContextSource } from './source.ts'
import { cutList } from './source.ts'

/**
 * What the rule has said of a pull request before, and what was answered, the oldest first. A review can do without
 * it, so it is left out where it cannot be read.
 */
export const readReviews = async (source: ContextSource): Promise<Context> => {
  const { about, marksAt, limitBytes } = source
  if (!about.issue?.isPull) return { text: '(the event is about no pull request)\n' }
  if (!marksAt)
    return leftOut('with several machines, only the one that has posted them knows its reviews')
  try {
    const texts = await listTexts({ ...source, marksAt }, about.issue.number)
    if (texts.length === 0) return { text: '(you have not reviewed it yet)\n' }
    return cutList(texts, 'texts of earlier reviews', limitBytes, 'last')
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    return leftOut('GitHub did not give them')
  }
}

const leftOut = (why: string): Context => ({
  text: `[left out: ${why}]\n`,
  note: 'the earlier reviews are left out',
})

/** Each review and each comment with its answers, by time. */
const listTexts = async (
  { github, marksAt, show }: ContextSource & Required<Pick<ContextSource, 'marksAt'>>,
  number: number,
): Promise<string[]> => {
  const { repository, reviews, comments } = await github(async ({ repository: name, list }) => ({
    repository: name,
    reviews: await list(`/pulls/${number}/reviews?sort=created`),
    comments: await list(`/pulls/${number}/comments?sort=created`),
  }))
  const marks = marksAt?.(`${repository}#${number}`)
  const found = [
    ...reviews.map((item) => ({ item, kind: 'summary', time: textAt(item, 'submitted_at') })),
    ...comments.map((item) => ({ item, kind: 'comment', time: textAt(item, 'created_at') })),
  ].flatMap(({ item, kind, time = '' }) => {
    const own = marks?.read(textAt(item, 'body') ?? '')
    if (own?.kind !== kind) return []
    const text = format('you', time, own.words, describePlace(item))
    const answers = comments
      .filter((one) => kind === 'comment' && isAnswer(one, item))
      .map(formatAnswer)
    return { time, text: show([text, ...answers].join('')) }
  })
  return found.sort((one, other) => (one.time < other.time ? -1 : 1)).map(({ text }) => text)
}

const isAnswer = (comment: unknown, to: unknown): boolean => {
  const id = valueAt(comment, ['in_reply_to_id'])
  return typeof id === 'number' && id === valueAt(to, ['id']) && comment !== to
}

const formatAnswer = (comment: unknown): string => {
  const who = textAt(comment, 'user', 'login') ?? 'someone'
  const time = textAt(comment, 'created_at') ?? ''
  return format(`${who} answered`, time, (textAt(comment, 'body') ?? '').trim())
}

/** A comment of GitHub on no line of the newest commit has the line of its own commit only. */
const describePlace = (item: unknown): string => {
  const path = textAt(item, 'path')
  if (path === undefined) return ''
  const line = valueAt(item, ['line'])
  const isThere = typeof line === 'number'
  const first = isThere ? line : valueAt(item, ['original_line'])
  const at = typeof first === 'number' ? `:${first}` : ''
  return ` on ${path}${at}${isThere ? '' : ', which has changed since'}`
}

const format = (who: string, time: string, words: string, place = ''): string => {
  const head = toPlainLine(`${time.slice(0, 16).replace('T', ' ')} ${who}${place}`)
  const lines = words.split(/\r?\n/).map((line) => `    ${line}`.trimEnd())
  return `${[head, ...lines].join('\n')}\n`
}
