import { collectWarnings } from '../../../shared/config/warnings.ts'
import type { Warning } from '../../../shared/config/warning.ts'
import { agentProgramWarnings } from '../../../shared/agents/program.ts'
import { sandboxWarnings } from '../../../shared/sandbox/warnings.ts'
import { envFileWarnings, readEnvironment } from '../../../shared/config/environment.ts'
import { readSecretFile } from '../../../shared/home/home.ts'
import { type Config, ConfigError, loadConfig, formatProblem } from '../../../shared/config/load.ts'
import { fileTargetWarnings } from '../../../shared/targets/warnings.ts'
import { toPlainText } from '../../../shared/text.ts'
import type { Problem } from '../../../shared/config/yaml.ts'
import type { Context } from '../../context.ts'
import { exitFailed } from '../../exit-code.ts'

/** Prints all problems of the three files, and warnings on standard error. */
export const checkConfiguration = async (context: Context): Promise<void> => {
  await isConfigurationGood(context)
}

/** The same; true when there are no problems. */
export const isConfigurationGood = async ({ home, terminal }: Context): Promise<boolean> => {
  const env = await readEnvironment(home)
  const { config, problems } = await load(() => loadConfig(home, env))
  const warnings: Warning[] = config
    ? [
        ...envFileWarnings((await readSecretFile(home.env)) ?? ''),
        ...collectWarnings(config, env),
        ...(await agentProgramWarnings(config, env, home.root)),
        ...(await sandboxWarnings(config, env, home.root)),
        ...(await fileTargetWarnings(config, home.root)),
      ]
    : []
  if (problems.length > 0) process.exitCode = exitFailed
  if (terminal.json) {
    terminal.printJson({ ok: problems.length === 0, problems, warnings })
    return problems.length === 0
  }
  for (const problem of problems) terminal.print(toPlainText(formatProblem(problem)))
  for (const { detail, hint } of warnings) {
    terminal.warn(`${terminal.paintError('yellow', 'warning:')} ${toPlainText(detail)}`)
    terminal.say(`hint: ${toPlainText(hint)}`)
  }
  if (config) terminal.print(summarize(config))
  else terminal.say(`${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`)
  return problems.length === 0
}

const load = async (
  read: () => Promise<Config>,
): Promise<{ config?: Config; problems: readonly Problem[] }> => {
  try {
    return { config: await read(), problems: [] }
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems }
    throw error
  }
}

const summarize = ({ webhooks, agents }: Config): string =>
  `ok: ${count(webhooks.length, 'webhook')}${describeRules(webhooks)}, ${count(agents.size, 'agent')}`

const describeRules = (webhooks: Config['webhooks']): string => {
  const named = webhooks.flatMap(({ rules }) => rules).filter(({ name }) => name !== undefined)
  return named.length === 0 ? '' : ` with ${count(named.length, 'rule')}`
}

const count = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? '' : 's'}`
