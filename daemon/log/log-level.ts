import { DoorwardError } from '../../shared/errors.ts'

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** The level that `DOORWARD_LOG_LEVEL` names, `info` without it. Throws `config-invalid` for another word. */
export const logLevelOf = (env: NodeJS.ProcessEnv): string => {
  const level = env['DOORWARD_LOG_LEVEL'] || 'info'
  if (logLevels.includes(level)) return level
  throw new DoorwardError('config-invalid', 'DOORWARD_LOG_LEVEL is no level of a log', {
    hint: `set it to one of ${logLevels.join(', ')}`,
  })
}
