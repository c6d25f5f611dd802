import { basename } from 'node:path'
import type { StatusProblem } from '../../../shared/api.ts'
import { warningsOf } from '../../../shared/config/warnings.ts'
import { problemLine } from '../../../shared/config/load.ts'
import { type Check, checksOf } from '../check.ts'
import type { ConfigurationFacts } from '../look/configuration.ts'

const { ok, warning, error, skipped } = checksOf('configuration')

/** What the running daemon alone can know of its configuration. */
const ofDaemon = ['restart-needed', 'config-not-watched']

/** The warnings that no other group has checks of its own for, and what they are about. */
const judgedHere: Readonly<Record<string, string>> = {
  'body-limit-too-large': 'limits',
  'provider-incomplete': 'providers',
}

/** Every problem of the three files with its place, and what the running daemon says of them. */
export const judgeConfiguration = (
  { config, problems, env }: ConfigurationFacts,
  hasHome: boolean,
  daemonSays: readonly StatusProblem[],
): Check[] => {
  if (!hasHome) return [skipped('files', 'there is no home yet')]
  const found = problems.map(({ hint, ...problem }) => {
    const isMissing = hint?.startsWith('doorward init')
    return error(
      basename(problem.file),
      problemLine(isMissing || hint === undefined ? problem : { ...problem, hint }),
      isMissing ? 'doorward init' : editHint(problem.file),
    )
  })
  const said = daemonSays
    .filter(({ code }) => ofDaemon.includes(code))
    .map(({ detail, hint }) => warning('daemon', detail, hint))
  if (!config) return [...found, ...said]
  const { webhooks, agents } = config
  const enabled = webhooks.filter((webhook) => webhook.enabled).length
  return [
    ok(
      'files',
      `${count(webhooks.length, 'webhook')} (${enabled} enabled), ${count(agents.size, 'agent')}`,
    ),
    ...warningsOf(config, env).flatMap(({ code, detail, hint }) => {
      const name = judgedHere[code]
      return name === undefined ? [] : [warning(name, detail, hint)]
    }),
    ...said,
  ]
}

const editHint = (file: string): string => {
  const [, name] = /(webhooks|agents|gateway)\.yaml$/.exec(file) ?? []
  return name === undefined
    ? 'mend it, then: doorward config check'
    : `doorward config edit ${name}`
}

const count = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? '' : 's'}`
