import { DoorwardError } from '../shared/errors.ts'
import { findUserHome } from '../shared/home/home.ts'
import { version } from '../shared/version.ts'
import { asTyped } from './as-typed.ts'
import type { Context } from './context.ts'
import { exitFailed } from './exit-code.ts'
import type { Examination } from './doctor/examine.ts'
import { pause } from './interrupt.ts'
import { wrapWords } from './wrap-words.ts'

export type DoctorOptions = {
  readonly privacy?: boolean
  readonly yes?: boolean
  readonly online?: boolean
}

/**
 * Checks everything that can be wrong, with or without a daemon, and names what mends it; exit code 1 when
 * something is red. With `privacy`, what an event leaves on disk instead. Throws `usage`.
 */
export const doctor = async (
  context: Context,
  paths: string[],
  { privacy = false, yes = false, online = false }: DoctorOptions,
): Promise<void> => {
  if (privacy) {
    const { checkPrivacy } = await import('./check-privacy.ts')
    return checkPrivacy(context, paths, yes)
  }
  if (paths.length > 0)
    throw new DoorwardError('usage', 'webhooks are named for the privacy check only', {
      hint: `doorward doctor --privacy ${paths.join(' ')}`,
    })
  const { examine } = await import('./doctor/examine.ts')
  const { home, userAgent, terminal } = context
  const found = await examine({ home, userAgent, env: process.env, online })
  if (found.checks.some(({ status }) => status === 'error')) process.exitCode = exitFailed
  if (terminal.json) await printDocument(context, found, online)
  else await printPage(context, found)
  await new Promise((resolve) => process.stdout.write('', resolve))
  await endNow()
}

/**
 * Ends though something may still go on that took longer than its limit. Node itself waits at its exit for
 * a file system that never answers; one that does answer is given the time for it, for a process that is
 * killed cannot tell by its exit code what it has found.
 */
const endNow = async (): Promise<void> => {
  for (const until = performance.now() + patienceMs; isReading(); await pause(20))
    if (performance.now() > until) process.kill(process.pid, 'SIGKILL')
  process.exit()
}

const patienceMs = 1000

const isReading = (): boolean =>
  process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))

const printPage = async ({ terminal }: Context, { checks }: Examination): Promise<void> => {
  const { checkLines, summaryLine } = await import('./doctor/print-checks.ts')
  const shown = checks.map((check) =>
    check.hint === undefined ? check : { ...check, hint: asTyped(check.hint) },
  )
  const summary = wrapWords(summaryLine(checks), terminal.columns)
  terminal.print([...checkLines(shown, terminal), ...summary].join('\n'))
}

const printDocument = async (
  { home, terminal }: Context,
  { checks, config }: Examination,
  online: boolean,
): Promise<void> => {
  const { documentOf, privateTextsOf } = await import('./doctor/document.ts')
  const facts = {
    version,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    checkedAt: new Date().toISOString(),
    online,
  }
  const userHome = findUserHome() ?? ''
  const isWithin = userHome !== '' && home.root.startsWith(`${userHome}/`)
  const root = isWithin ? [] : [[home.root, '<home>'] as const]
  terminal.printJson(documentOf(checks, facts, [...root, ...privateTextsOf(config, userHome)]))
}
