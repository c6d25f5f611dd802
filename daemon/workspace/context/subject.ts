import { valueAt } from '../../util/payload-path.ts'

/** The pull request, issue or run that an event of GitHub is about. */
export type Subject = {
  /** The pull request or issue. */
  readonly issue?: { readonly number: number; readonly isPull: boolean }
  /** A run of a workflow, a job of it, or a check. */
  readonly run?: {
    readonly kind: 'workflow_run' | 'workflow_job' | 'check_run'
    readonly id: number
  }
}

const kinds = ['workflow_run', 'workflow_job', 'check_run'] as const

export const findSubject = (event: unknown): Subject => {
  const numberAt = (...path: string[]): number | undefined => {
    const value = valueAt(event, path)
    return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
  }
  const kind = kinds.find((name) => numberAt(name, 'id') !== undefined)
  const id = kind && numberAt(kind, 'id')
  const pull =
    numberAt('pull_request', 'number') ?? (kind && numberAt(kind, 'pull_requests', '0', 'number'))
  const number = pull ?? numberAt('issue', 'number')
  const isPull = pull !== undefined || valueAt(event, ['issue', 'pull_request']) !== undefined
  return {
    ...(number !== undefined && { issue: { number, isPull } }),
    ...(kind && id !== undefined && { run: { kind, id } }),
  }
}
