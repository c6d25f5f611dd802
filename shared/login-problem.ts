import type { Status, StatusProblem } from './api.ts'

type Problems = Status['problems']

/**
 * What keeps the login to a provider from being used, where the daemon says it. Problems name no
 * provider: one is of a login that its command mends, or of that login's file.
 */
export const problemOfLogin = (problems: Problems, provider: string): StatusProblem | undefined =>
  problems.find(
    ({ detail, hint }) =>
      hint.endsWith(loginOf(provider)) ||
      /[/\\]tokens[/\\]([^/\\]+)\.json/.exec(`${detail} ${hint}`)?.[1] === provider,
  )

/**
 * The same where something else than a new login mends it, such as a chmod of the token file: a login would
 * replace one that is good.
 */
export const fileProblemOf = (problems: Problems, provider: string): StatusProblem | undefined => {
  const problem = problemOfLogin(problems, provider)
  return problem?.hint === loginOf(provider) ? undefined : problem
}

const loginOf = (provider: string): string => `doorward oauth login ${provider}`
