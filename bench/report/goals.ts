import type { Column } from './sample.ts'

/** What a figure of doorward is compared with: a program of the same round, or nothing. */
type Reference = Column | 'nothing'

export type Goal = {
  readonly row: string
  readonly measure: string
  readonly reference: Reference
  readonly bound: 'at least' | 'at most'
  /** A multiple of the reference, or the figure itself. */
  readonly limit: number
}

const goal = (
  row: string,
  measure: string,
  bound: Goal['bound'],
  limit: number,
  reference: Reference = 'nothing',
): Goal => ({ row, measure, reference, bound, limit })

/** The columns of programs that do the same job: they check a delivery, and give it to an agent or program. */
export const sameJob = ['adnanh, runs', 'openclaw'] as const

const flood = '5,000 posts at once, 256 callers'
const floodWithRoom = `${flood}, room for all`

/** On Node 20 the `AbortSignal` of each run takes 2 µs (README.md). */
const ofBareFor1KB = process.versions.node.startsWith('20.') ? 0.4 : 0.5

export const goals: readonly Goal[] = [
  goal('posts of 24 KB, 16 callers', 'answers/s', 'at least', 0.65, 'bare'),
  goal('posts of 24 KB, 16 callers', 'answers/s', 'at least', 0.85, 'koa'),
  goal('posts of 1 KB, 64 callers', 'answers/s', 'at least', ofBareFor1KB, 'bare'),
  goal('posts of 1 KB, 64 callers', 'answers/s', 'at least', 0.9, 'koa'),
  ...['posts of 24 KB, 16 callers', 'posts of 1 KB, 64 callers'].flatMap((row) =>
    sameJob.map((peer) => goal(row, 'answers/s', 'at least', 3, peer)),
  ),
  goal('posts of 1 MB, 64 callers', 'answers/s', 'at least', 0.8, 'bare'),
  goal('memory of an idle server', 'MB', 'at most', 80),
  goal('memory after the loads', 'MB', 'at most', 140),
  goal('start to the first good answer', 'ms', 'at most', 300),
  ...[flood, floodWithRoom].flatMap((row) => [
    goal(row, 'neither', 'at most', 0),
    goal(row, 'accepted and not done', 'at most', 0),
    goal(row, 'peak MB', 'at most', 160),
    // The concurrency that the bench configures.
    goal(row, 'processes at once', 'at most', 32),
  ]),
  // All up to queue.max_events, which is 1,000 and 5,000 there; the rest is answered 503.
  goal(flood, 'accepted', 'at least', 1000),
  goal(floodWithRoom, 'accepted', 'at least', 5000),
  goal('cached token, 1 caller', 'p50 ms', 'at most', 2, 'bare'),
  goal('cached token, 32 callers', 'p50 ms', 'at most', 2, 'bare'),
  goal('cached token while another refresh hangs', 'ms above an idle read', 'at most', 5),
  goal('workspace of 10,000 files', 'next ms', 'at most', 2000),
  ...['list', 'list of one state', 'search', 'search that finds nothing', 'usage'].map((what) =>
    goal('with 100,000 past events', `${what} ms`, 'at most', 500),
  ),
  goal('doorward oauth token', 'ms', 'at most', 1.3, 'gh'),
]

/** For the table, as `>= 0.80 × bare`. */
export const goalText = ({ reference, bound, limit }: Goal): string => {
  const sign = bound === 'at least' ? '>=' : '<='
  return reference === 'nothing' ? `${sign} ${limit}` : `${sign} ${limit.toFixed(2)} × ${reference}`
}

export const holds = ({ bound, limit }: Goal, value: number): boolean =>
  bound === 'at least' ? value >= limit : value <= limit
