/** What was promised of a figure. */
export type Goal = {
  readonly row: string
  readonly measure: string
  /** `times`: as a multiple of the bare server's in the same round; `above`: more than that; `is`: by itself. */
  readonly how: 'times' | 'above' | 'is'
  readonly bound: 'at least' | 'at most'
  readonly limit: number
}

const goal = (
  row: string,
  measure: string,
  how: Goal['how'],
  bound: Goal['bound'],
  limit: number,
): Goal => ({ row, measure, how, bound, limit })

const flood = '5,000 posts at once, 256 callers'
const floodWithRoom = `${flood}, room for all`
const hanging = 'cached token while another refresh hangs'

export const goals: readonly Goal[] = [
  goal('posts of 24 KB, 16 callers', 'answers/s', 'times', 'at least', 0.8),
  goal('posts of 1 KB, 64 callers', 'answers/s', 'times', 'at least', 0.65),
  goal('posts of 24 KB, 64 callers', 'p99 ms', 'times', 'at most', 1.5),
  goal('posts of 1 MB, 64 callers', 'answers/s', 'times', 'at least', 0.85),
  ...[200, 1000].map((pace) =>
    goal(`posts of 24 KB, ${pace} a second`, 'p99 ms', 'above', 'at most', 2.5),
  ),
  goal('memory of an idle server', 'MB', 'is', 'at most', 80),
  goal('memory after the loads', 'MB', 'is', 'at most', 120),
  goal('start to the first good answer', 'ms', 'is', 'at most', 300),
  ...[flood, floodWithRoom].flatMap((row) => [
    goal(row, 'neither', 'is', 'at most', 0),
    goal(row, 'accepted and not done', 'is', 'at most', 0),
    goal(row, 'p99 ms', 'is', 'at most', 250),
    goal(row, 'peak MB', 'is', 'at most', 160),
    // The concurrency that the bench configures.
    goal(row, 'processes at once', 'is', 'at most', 32),
  ]),
  // All up to queue.max_events, the rest 503: those are 1,000 and 5,000 there, and what ran meanwhile.
  goal(flood, 'accepted', 'is', 'at least', 1000),
  goal(floodWithRoom, 'accepted', 'is', 'at least', 5000),
  goal('cached token, 1 caller', 'p50 ms', 'times', 'at most', 1.5),
  goal('cached token, 32 callers', 'p50 ms', 'times', 'at most', 1.5),
  goal(hanging, 'ms above an idle read', 'is', 'at most', 5),
  // Where no file of more certificates is loaded, which the bench sees to.
  goal('doorward --version', 'ms', 'times', 'at most', 1.35),
  goal('doorward oauth token', 'ms', 'times', 'at most', 2),
]

/** For the table, as `>= 0.80 × bare`. */
export const goalText = ({ how, bound, limit }: Goal): string => {
  const sign = bound === 'at least' ? '>=' : '<='
  if (how === 'times') return `${sign} ${limit.toFixed(2)} × bare`
  return how === 'above' ? `${sign} bare + ${limit}` : `${sign} ${limit}`
}

export const holds = ({ bound, limit }: Goal, value: number): boolean =>
  bound === 'at least' ? value >= limit : value <= limit
