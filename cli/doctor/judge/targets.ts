import type { Config } from '../../../shared/config/load.ts'
import { targetWarnings } from '../../../shared/config/target-warnings.ts'
import type { Warning } from '../../../shared/config/warning.ts'
import { type Check, checksOf } from '../check.ts'
import type { FileTarget } from '../look/file-targets.ts'

const { ok, warning, error, skipped } = checksOf('targets')

/** Whether the targets of enabled webhooks have what they need; `reached` are those that were asked. */
export const judgeTargets = (
  config: Config,
  env: NodeJS.ProcessEnv,
  files: readonly FileTarget[],
  fileWarnings: readonly Warning[],
  reached: readonly Check[] | undefined,
): Check[] => {
  const targets = config.webhooks.filter(({ enabled }) => enabled).flatMap(({ targets }) => targets)
  if (targets.length === 0) return [skipped('targets', 'no enabled webhook delivers anywhere')]
  const faults = targetWarnings(config, env).map(({ code, detail, hint }) => {
    const [, name = 'target', rest = detail] = /^target ([^ ]+): (.*)$/s.exec(detail) ?? []
    return (code === 'target-not-encrypted' ? warning : error)(name, rest, hint)
  })
  const closed = files
    .filter((file) => file.closed !== undefined)
    .map(({ text, closed }) =>
      error(
        'file',
        `${text} cannot be written: ${closed} is closed to you`,
        'make it writable for you',
      ),
    )
  const refused = fileWarnings.map(({ detail, hint }) =>
    error('file', detail.replace(/^target /, ''), hint),
  )
  const wrong = new Set([...faults, ...closed, ...refused].map(({ name }) => name.split(':')[0]))
  const kinds = [...new Set(targets.map(({ kind }) => kind))].filter((kind) => !wrong.has(kind))
  const isLocal = (kind: string) => ['log', 'notify', 'file'].includes(kind)
  const sent = kinds.filter((kind) => !isLocal(kind))
  return [
    ...faults,
    ...closed,
    ...refused,
    ...kinds.filter(isLocal).map((kind) => ok(kind, 'stays on this machine')),
    ...(reached ?? sent.map((kind) => skipped(kind, 'it is asked with --online only'))),
  ]
}
