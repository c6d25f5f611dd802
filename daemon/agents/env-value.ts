import { secretsOf } from '../../shared/config/environment.ts'
import { DoorwardError } from '../../shared/errors.ts'

/** The value of a variable that an agent cannot do without. Throws `agent-failed` when it is unset or empty. */
export const envValue = (name: string, env: NodeJS.ProcessEnv): string => {
  const [value] = secretsOf([name], env)
  if (value !== undefined) return value.trim()
  const message = `${name} is unset or empty`
  const hint = `set ${name} in .env of the home folder, or in the environment of the daemon`
  throw new DoorwardError('agent-failed', message, { hint, localDetail: `${message} (${hint})` })
}
