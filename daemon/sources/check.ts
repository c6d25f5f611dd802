import type { SourceSummary } from '../../shared/api/api.ts'
import { type Check, checksFor } from '../../shared/api/checks.ts'

const { ok, warning, error } = checksFor('sources')

/** Whether each source brings events, and why not. */
export const checkSources = (sources: readonly SourceSummary[]): Check[] =>
  sources.map(({ kind, how, state, since, problem, webhooks }) => {
    const name = webhooks[0] === undefined ? kind : `${kind} ${webhooks[0]}`
    if (state === 'failed') return error(name, problem?.detail ?? 'failed', problem?.hint)
    if (problem) return warning(name, problem.detail, problem.hint)
    if (state === 'connected') return ok(name, `${how}, since ${since ?? 'now'}`)
    return warning(name, 'not connected yet', 'check the network')
  })
