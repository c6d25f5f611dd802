import { tmpdir } from 'node:os'
import { agentClis } from '../../shared/config/agent-clis.ts'
import type { CliAgent } from '../../shared/config/agent-schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Answer, cutTo } from './answer.ts'
import { buildArgv, grantsTools, NoAnswer, presets } from './cli-presets.ts'
import { memoryFolder } from './workspace.ts'
import { type Finished, type Surroundings, describeExit, lastLines, runProgram } from './program.ts'

/** What stands around an answer in JSON: escapes, figures, and what tools said on the way. */
const roomBytes = 16 * 1024 * 1024
const shownCharacters = 600

/**
 * Runs an agent program that doorward knows: right flags, a folder of its own for temporary files, the
 * answer read out of what it prints. Throws as `runProgram` does, and `agent-failed` with the
 * program's own words for the owner.
 */
export const runCli = async (
  agent: CliAgent,
  prompt: string,
  surroundings: Surroundings,
): Promise<Answer> => {
  const { kind } = agent
  const { env, passed, prepare, read } = presets[kind]
  const grants = grantsTools(agent)
  const finished = await runProgram(
    {
      argv: buildArgv(agent),
      cwd: agent.cwd,
      env: agent.env ?? {},
      passed,
      set: env(grants),
      timeoutMs: agent.timeout,
      outputLimitBytes: agent.output_limit * 6 + roomBytes,
      install: agentClis[kind].install,
      ownFolder: {
        parent: prepare ? memoryFolder() : tmpdir(),
        prepare: async (folder) => (await prepare?.(folder, surroundings.env, grants)) ?? {},
      },
    },
    prompt,
    surroundings,
  )
  try {
    const text = read({
      stdout: finished.stdout.toString('utf8'),
      stderr: finished.stderr.toString('utf8'),
      exitCode: finished.exitCode,
    })
    return cutTo(text, agent.output_limit)
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    throw failed(agent, finished, error.message)
  }
}

const failed = (agent: CliAgent, finished: Finished, words: string): DoorwardError => {
  const { program } = agentClis[agent.kind]
  const message =
    finished.exitCode === 0
      ? `${program} ended without an answer that can be read`
      : `${program} ${describeExit(finished)}`
  const said = (finished.showable(words) || lastLines(finished)).slice(0, shownCharacters)
  const aboutLogin = /\b40[13]\b|authenticat|unauthori[sz]ed|api[ _-]?key|log(ged)? ?in|credential/i
  const login = aboutLogin.test(said) ? ` (${presets[agent.kind].login})` : ''
  return new DoorwardError('agent-failed', message, {
    localDetail: `${message}${said === '' ? '' : `: ${said}`}${login}`,
  })
}
