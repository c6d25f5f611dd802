import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Config } from '../../../../shared/config/load.ts'
import { enabledRules } from '../../../../shared/config/webhook.ts'
import { listFilePaths, targetFaults } from '../../../../shared/targets/warnings.ts'
import type { Warning } from '../../../../shared/config/warning.ts'
import type { Home } from '../../../../shared/home/home.ts'
import { type Check, checksFor } from '../check.ts'

const { ok, warning, error, skipped } = checksFor('targets')

/** Warnings about targets that can be delivered to. */
const doubts = ['target-not-encrypted', 'target-url-secret']

/** Checks the targets of enabled webhooks; `reached` are the checks of --online. */
export const checkTargets = (
  config: Config,
  env: NodeJS.ProcessEnv,
  files: readonly FileTarget[],
  fileWarnings: readonly Warning[],
  reached: readonly Check[] | undefined,
): Check[] => {
  const targets = enabledRules(config).flatMap((rule) => rule.targets)
  if (targets.length === 0) return [skipped('targets', 'no enabled webhook delivers anywhere')]
  const faults = targetFaults(config, env).map(({ code, about, what, hint }) =>
    (doubts.includes(code) ? warning : error)(about.target ?? 'target', what, hint),
  )
  const closed = files
    .filter((file) => file.closed !== undefined)
    .map(({ text, closed }) =>
      error(
        'file',
        `${text} cannot be written: ${closed} is not writable for you`,
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
    ...(reached ?? sent.map((kind) => skipped(kind, 'only --online asks it'))),
  ]
}

type FileTarget = {
  /** As in `deliver_to`. */
  readonly text: string
  /** The existing part of the path that is not writable, if any. */
  readonly closed: string | undefined
}

/** Collects whether file targets can be written, as far as their paths are fixed. */
export const collectFileTargets = async (config: Config, home: Home): Promise<FileTarget[]> =>
  Promise.all(
    listFilePaths(config, home.root).map(async ({ text, folder, file = folder }) => ({
      text,
      closed: await closedPart(file),
    })),
  )

const closedPart = async (path: string): Promise<string | undefined> => {
  for (let part = path; ; part = dirname(part)) {
    const found = await stat(part).catch(() => undefined)
    if (!found && dirname(part) !== part) continue
    const mode = found?.isDirectory() ? constants.W_OK | constants.X_OK : constants.W_OK
    // A file in the place of a folder takes no file either.
    const isWrong = part !== path && !found?.isDirectory()
    const isOpen = await access(part, mode).then(
      () => true,
      () => false,
    )
    return isOpen && !isWrong ? undefined : part
  }
}
