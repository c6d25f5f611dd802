/** Whose figure it is: a column of the table. */
export type Column =
  | 'bare'
  | 'koa'
  | 'adnanh, runs'
  | 'adnanh, runs nothing'
  | 'openclaw'
  | 'gh'
  | 'oidc-agent'
  | 'filtered'
  | 'doorward'
  | 'over NATS'

export const columns: readonly Column[] = [
  'bare',
  'koa',
  'adnanh, runs',
  'adnanh, runs nothing',
  'openclaw',
  'gh',
  'oidc-agent',
  'filtered',
  'doorward',
  'over NATS',
]

export type Sample = {
  /** What was done: a row. */
  readonly row: string
  /** What was measured of it, with its unit. */
  readonly measure: string
  readonly column: Column
  readonly value: number
  /** Figures of one round are compared with each other. */
  readonly round: number
}

/** Takes down one figure. */
export type Note = (sample: Omit<Sample, 'round'>) => void
