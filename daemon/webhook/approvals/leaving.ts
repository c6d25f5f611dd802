import { hash } from 'node:crypto'
import { type Approve, toApprove } from '../../../shared/approve/approve.ts'
import type { Rule } from '../../../shared/config/rule.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { toServerKind } from '../../../shared/targets/targets.ts'

/** Holds the answers of a rule back from its targets. */
export type Leaving = {
  /** Nothing is delivered. */
  readonly isDryRun: boolean
  readonly approve?: Approve | undefined
  /** A hash of the rule and of the settings of its targets: an approval is for these alone. */
  readonly fingerprint: string
}

/** Undefined for a rule whose answers are delivered unasked: it costs nothing. */
export const toLeaving = (
  rule: Rule,
  gateway: Pick<Gateway, 'approve' | 'targets'>,
  env: NodeJS.ProcessEnv,
): Leaving | undefined => {
  const isDryRun = rule.dryRun === true
  const approve = toApprove(rule.approve, gateway.approve)
  if (!isDryRun && !approve) return undefined
  // The agent and the filter say nothing of what leaves.
  const { agent: _agent, filter: _filter, coalesce: _coalesce, ...own } = rule
  const settings = rule.targets.map(({ kind }) => {
    const key = toServerKind(kind)
    return isKey(key, gateway.targets) ? gateway.targets[key] : null
  })
  const urls = variablesIn(settings).map((name) => env[name] ?? '')
  const fingerprint = hash('sha256', JSON.stringify([own, approve, settings, urls], toSource))
  return { isDryRun, ...(approve && { approve }), fingerprint }
}

/** Replaces a template by its text. */
const toSource = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'source' in value ? value.source : value

const isKey = (key: string, targets: Gateway['targets']): key is keyof Gateway['targets'] =>
  Object.hasOwn(targets, key)

/** The variables with addresses of targets: tokens may be renewed while an answer waits. */
const variablesIn = (settings: unknown): string[] => {
  const names: string[] = []
  JSON.stringify(settings, (key, value: unknown) => {
    if (key.endsWith('url_env') && typeof value === 'string') names.push(value)
    return value
  })
  return names
}
