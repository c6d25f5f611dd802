import { getKeySource } from '../../../shared/signatures/scheme.ts'
import type { Status } from '../../../shared/api/api.ts'
import type { Config } from '../../../shared/config/load.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { findUserHome } from '../../../shared/home/home.ts'
import { type PrivateText, replacePrivate } from '../../../shared/privacy.ts'
import { toPlainLine, measureWidth } from '../../../shared/text.ts'
import { version } from '../../../shared/version.ts'
import type { Context } from '../../context.ts'
import { exitFailed } from '../../exit-code.ts'
import { pause } from '../../terminal/spinner.ts'
import { asInvoked, type Style, type Terminal } from '../../terminal/terminal.ts'
import { wrapWords } from '../../terminal/wrap.ts'
import { type Check, type CheckStatus, checkGroups } from '../../../shared/api/checks.ts'
import type { DoctorResult } from './run.ts'

export type DoctorOptions = {
  readonly privacy?: boolean
  readonly yes?: boolean
  readonly online?: boolean
}

/**
 * Checks for problems, with or without a daemon, and prints their fixes; exit code 1 on an error. `privacy`
 * checks what an event leaves on disk instead. Throws `usage`.
 */
export const doctor = async (
  context: Context,
  paths: string[],
  { privacy = false, yes = false, online = false }: DoctorOptions,
): Promise<void> => {
  if (privacy) {
    const { checkPrivacy } = await import('./privacy.ts')
    return checkPrivacy(context, paths, yes)
  }
  if (paths.length > 0)
    throw new DoorwardError('usage', 'only --privacy takes webhooks', {
      hint: `doorward doctor --privacy ${paths.join(' ')}`,
    })
  const { runChecks } = await import('./run.ts')
  const { home, userAgent, terminal } = context
  const found = await runChecks({ home, userAgent, env: process.env, online })
  if (found.checks.some(({ status }) => status === 'error')) process.exitCode = exitFailed
  if (terminal.json) await printDocument(context, found, online)
  else await printPage(context, found)
  await new Promise((resolve) => process.stdout.write('', resolve))
  await exitNow()
}

/**
 * Exits although a check may still run after its deadline. Node waits at its exit for a file system that never
 * answers, so the process kills itself then; it waits first, as a killed process has no exit code.
 */
const exitNow = async (): Promise<void> => {
  for (const until = performance.now() + patienceMs; isReading(); await pause(20))
    if (performance.now() > until) process.kill(process.pid, 'SIGKILL')
  process.exit()
}

const patienceMs = 1000

const isReading = (): boolean =>
  process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))

const printPage = async ({ terminal }: Context, { checks }: DoctorResult): Promise<void> => {
  const shown = checks.map((check) =>
    check.hint === undefined ? check : { ...check, hint: asInvoked(check.hint) },
  )
  const summary = wrapWords(summaryLine(checks), terminal.columns)
  terminal.print([...checkLines(shown, terminal), '', ...summary].join('\n'))
}

const printDocument = async (
  { home, terminal }: Context,
  { checks, ...sources }: DoctorResult,
  online: boolean,
): Promise<void> => {
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
  terminal.printJson(toDocument(checks, facts, [...root, ...listPrivateTexts(sources, userHome)]))
}

/** The output of `doctor --json`. People share it, so it contains nothing private. */
export type DoctorDocument = {
  readonly ok: boolean
  readonly version: string
  readonly node: string
  readonly platform: string
  readonly checkedAt: string
  readonly online: boolean
  readonly summary: Readonly<Record<CheckStatus, number>>
  readonly checks: readonly Check[]
}

/** The document, with private texts and mail addresses replaced in every check. */
export const toDocument = (
  checks: readonly Check[],
  facts: Omit<DoctorDocument, 'ok' | 'summary' | 'checks'>,
  hidden: readonly PrivateText[],
): DoctorDocument => {
  const words = hidden.filter(([text]) => text.length > 1)
  const clean = (text: string): string => replacePrivate(text, words)
  const summary = countByStatus(checks)
  return {
    ok: summary.error === 0,
    ...facts,
    summary,
    checks: checks.map((check) => ({
      ...check,
      name: clean(check.name),
      detail: clean(check.detail),
      ...(check.hint === undefined ? {} : { hint: clean(check.hint) }),
    })),
  }
}

type PrivateSources = {
  readonly config: Config | undefined
  readonly status: Pick<Status, 'webhooks'> | undefined
}

/** The public address, recipients, and paths of unsigned webhooks, which are their only secret. */
export const listPrivateTexts = (
  { config, status }: PrivateSources,
  userHome: string,
): PrivateText[] => {
  const publicUrl = config?.gateway.server.public_url
  const webhooks = config?.webhooks ?? []
  const used = status?.webhooks ?? []
  const targets = [
    ...webhooks.flatMap(({ rules }) => rules.flatMap((rule) => rule.targets)),
    ...used.flatMap(({ deliverTo }) =>
      deliverTo.map((text) => ({ text, kind: text.split(':')[0] ?? '' })),
    ),
  ]
  const unsigned = [
    ...webhooks.filter(
      ({ scheme, secretNames, feed }) => secretNames.length === 0 && !feed && !getKeySource(scheme),
    ),
    ...used.filter(({ secret }) => secret === 'none'),
  ]
  return [
    [userHome, '~'],
    ...(publicUrl === undefined ? [] : [[publicUrl, '<public url>'] as const]),
    // These targets name people and places; others are names of gateway.yaml.
    ...targets
      .filter(({ kind }) => !['none', 'log', 'notify', 'file', 'discord', 'http'].includes(kind))
      .map(({ kind, text }) => [text, `${kind}:<target>`] as const),
    ...unsigned.map(({ path }) => [path, '<unsigned webhook>'] as const),
  ]
}

type Page = Pick<Terminal, 'columns' | 'paint'>

const marks: Readonly<Record<CheckStatus, readonly [string, Style]>> = {
  ok: ['✓', 'green'],
  warning: ['!', 'yellow'],
  error: ['✗', 'red'],
  skipped: ['-', 'gray'],
}

type Shown = Omit<Check, 'hint'> & { readonly hint?: string | undefined }

/** Below this width, the detail of a check is printed under its name. */
const narrowest = 60
const widestName = 22

/** Prints checks by group: mark, name and detail, with the fix below; last groups that were not checked. */
export const checkLines = (all: readonly Check[], page: Page): string[] => {
  const unchecked = all.filter(({ group, name, status }) => status === 'skipped' && name === group)
  const checks = all.filter((check) => !unchecked.includes(check))
  const names = checks.map(({ name }) => measureWidth(toPlainLine(name)))
  const width = Math.min(widestName, Math.max(0, ...names))
  const reasons = [...new Set(unchecked.map(({ detail }) => detail))]
  const rest = reasons.map((detail): Check => {
    const same = unchecked.filter((check) => check.detail === detail)
    return { ...(same[0] as Check), name: same.map(({ name }) => name).join(', ') }
  })
  return [...groupLines(checks, width, page), ...titled('Not checked', rest, width, page)]
}

const groupLines = (checks: readonly Check[], width: number, page: Page): string[] =>
  checkGroups.flatMap((group) => {
    const own = checks.filter((check) => check.group === group)
    // A fix of several checks is printed once.
    const shown = own.map((check, index) =>
      check.hint !== undefined && check.hint === own[index + 1]?.hint
        ? { ...check, hint: undefined }
        : check,
    )
    return titled(`${group.charAt(0).toUpperCase()}${group.slice(1)}`, shown, width, page)
  })

const titled = (title: string, checks: readonly Shown[], width: number, page: Page): string[] =>
  checks.length === 0
    ? []
    : [page.paint('bold', title), ...checks.flatMap((check) => checkLinesFor(check, width, page))]

const checkLinesFor = (
  { name: given, status, detail, hint }: Shown,
  width: number,
  { columns, paint }: Page,
): string[] => {
  const [sign, style] = marks[status]
  const mark = paint(style, sign)
  const name = toPlainLine(given)
  const isNarrow = columns !== undefined && columns < narrowest
  const indent = isNarrow ? 4 : width + 6
  const fits = !isNarrow && measureWidth(name) <= width
  const text = toPlainLine(detail)
  const first = `  ${mark} ${name}`
  const firstWidth = measureWidth(name) + 4
  const lines = fits
    ? wrapWords(text, columns, { used: indent, indent }).map((line, index) =>
        index === 0 ? `${first}${' '.repeat(width - measureWidth(name))}  ${line}` : line,
      )
    : columns === undefined || firstWidth + 2 + measureWidth(text) <= columns
      ? [`${first}  ${text}`]
      : [first, ...indented(text, columns, indent)]
  if (hint === undefined) return lines
  const [start = '', ...rest] = wrapWords(toPlainLine(hint), columns, {
    used: indent + 2,
    indent: indent + 2,
  })
  return [...lines, `${' '.repeat(indent)}→ ${start}`, ...rest]
}

const indented = (text: string, columns: number, indent: number): string[] => {
  const [start = '', ...rest] = wrapWords(text, columns, { used: indent, indent })
  return [`${' '.repeat(indent)}${start}`, ...rest]
}

const countByStatus = (checks: readonly Check[]): Record<CheckStatus, number> => {
  const summary = { ok: 0, warning: 0, error: 0, skipped: 0 }
  for (const { status } of checks) summary[status] += 1
  return summary
}

/** `2 errors, 1 warning, 20 ok, 4 not checked`, without zeros. */
export const summaryLine = (checks: readonly Check[]): string => {
  const { error, warning, ok, skipped } = countByStatus(checks)
  const count = (number: number, word: string) => `${number} ${word}${number === 1 ? '' : 's'}`
  return [
    error > 0 ? count(error, 'error') : [],
    warning > 0 ? count(warning, 'warning') : [],
    ok > 0 ? `${ok} ok` : [],
    skipped > 0 ? `${skipped} not checked` : [],
  ]
    .flat()
    .join(', ')
}
