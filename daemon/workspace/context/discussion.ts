import { toPlainLine, toPlainText } from '../../../shared/text.ts'
import { listAt, textAt, valueAt } from '../../util/payload-path.ts'
import type { Context, ContextSource } from './source.ts'
import type { GithubReader } from './github.ts'
import { countFitting, cutList } from './source.ts'

/*
 * Comments of people on a change, and logs of checks that failed.
 */

/** The comments of the pull request or issue, and the reviews, the oldest first. */
export const readComments = async ({
  github,
  about,
  limitBytes,
  show,
}: ContextSource): Promise<Context> => {
  const { issue } = about
  if (!issue) return { text: '(the event is about no pull request or issue)\n' }
  const { number, isPull } = issue
  const lists = await github(async ({ list }) => [
    ...(await list(`/issues/${number}/comments?sort=created`)),
    ...(isPull ? await list(`/pulls/${number}/reviews?sort=created`) : []),
    ...(isPull ? await list(`/pulls/${number}/comments?sort=created`) : []),
  ])
  const comments = lists
    .filter((comment) => textAt(comment, 'body')?.trim())
    .map((comment) => ({ comment, time: timeOf(comment) }))
    .sort((one, other) => (one.time < other.time ? -1 : 1))
  if (comments.length === 0) return { text: '(no comments)\n' }
  const texts = comments.map(({ comment, time }) => show(formatComment(comment, time)))
  return cutList(texts, 'comments', limitBytes, 'last')
}

const timeOf = (comment: unknown): string =>
  textAt(comment, 'created_at') ?? textAt(comment, 'submitted_at') ?? ''

const formatComment = (comment: unknown, time: string): string => {
  const path = textAt(comment, 'path')
  const line = valueAt(comment, ['line'])
  const where = path === undefined ? '' : ` on ${path}${typeof line === 'number' ? `:${line}` : ''}`
  const state = textAt(comment, 'state')?.toLowerCase().replaceAll('_', ' ')
  const who = textAt(comment, 'user', 'login') ?? 'someone'
  const head = toPlainLine(`${time.slice(0, 16).replace('T', ' ')} ${who}${where}`)
  const body = (textAt(comment, 'body') ?? '').trim().split(/\r?\n/)
  const lines = body.map((text) => `    ${text}`.trimEnd())
  return `${[state === undefined ? head : `${head} (${state})`, ...lines].join('\n')}\n`
}

const maxJobs = 10
/** The part of one log that is read: failures are near its end. */
const maxLogBytes = 2 * 1024 * 1024

/** The end of the log of each job that failed. */
export const readFailedLogs = async ({
  github,
  about: { run },
  limitBytes,
  show,
}: ContextSource): Promise<Context> => {
  if (!run) return { text: '(the event is about no run of a workflow and no check)\n' }
  return github(async (reader) => {
    if (run.kind === 'check_run') {
      const check = await reader.get(`/check-runs/${run.id}`)
      if (textAt(check, 'app', 'slug') !== 'github-actions')
        return { text: show(formatCheck(check, limitBytes)) }
    }
    const all =
      run.kind === 'workflow_run'
        ? await reader.list(`/actions/runs/${run.id}/jobs?filter=latest`, 'jobs')
        : // A check of GitHub Actions has the number of its job.
          [await reader.get(`/actions/jobs/${run.id}`)]
    const failed = all.filter((job) =>
      ['failure', 'timed_out'].includes(textAt(job, 'conclusion') ?? ''),
    )
    if (failed.length === 0) return { text: '(no job failed)\n' }
    const jobs = failed.slice(0, maxJobs)
    const each = Math.floor(limitBytes / jobs.length)
    const texts: string[] = []
    for (const job of jobs) texts.push(show(await readLog(reader, job, each)))
    if (jobs.length === failed.length) return { text: texts.join('\n') }
    const note = `${failed.length - jobs.length} of ${failed.length} jobs`
    return { text: `${texts.join('\n')}[left out: ${note}]\n`, note: `the logs leave out ${note}` }
  })
}

const readLog = async (
  { download }: GithubReader,
  job: unknown,
  limitBytes: number,
): Promise<string> => {
  const step = listAt(job, 'steps').find((one) => textAt(one, 'conclusion') === 'failure')
  const at = step === undefined ? '' : ` at step ${textAt(step, 'name') ?? ''}`
  const head = toPlainLine(`job ${textAt(job, 'name') ?? ''} failed${at}`)
  const id = valueAt(job, ['id'])
  const log = await download(`/actions/jobs/${String(id)}/logs`, maxLogBytes)
  return `${head}\n${log === undefined ? '(there is no log)\n' : cutLog(log, limitBytes)}`
}

const linesAfterError = 5

/** Without times and colours, up to the last error: what cleans up after it says nothing. */
const cutLog = (log: string, limitBytes: number): string => {
  const lines = toPlainText(log)
    .split('\n')
    .map((line) => line.replace(/^\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z ?/, ''))
  const error = lines.findLastIndex((line) => line.startsWith('##[error]'))
  const end = error === -1 ? lines.length : error + 1 + linesAfterError
  const newestFirst = lines.slice(0, end).toReversed()
  const fitting = countFitting(
    newestFirst.map((line) => `${line}\n`),
    limitBytes,
  )
  const cut = newestFirst.length - fitting
  const kept = newestFirst.slice(0, fitting).toReversed().join('\n').trimEnd()
  return `${cut === 0 ? '' : `[cut: the first ${cut} lines]\n`}${kept}\n`
}

const formatCheck = (check: unknown, limitBytes: number): string => {
  const output = ['title', 'summary', 'text'].map((name) => textAt(check, 'output', name) ?? '')
  const text = output.filter((part) => part !== '').join('\n')
  return `check ${toPlainLine(textAt(check, 'name') ?? '')}\n${cutLog(toPlainText(text), limitBytes)}`
}
