import type { CommandAgent } from '../../shared/config/agent-schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Answer, cutText } from './answer.ts'
import { type Surroundings, endingOf, lastLines, runProgram } from './program.ts'

/**
 * Runs the program of a `command` agent; its standard output is the answer. Throws as `runProgram`
 * does, and `agent-failed` (exit code and last lines of standard error).
 */
export const runCommand = async (
  agent: CommandAgent,
  prompt: string,
  surroundings: Surroundings,
): Promise<Answer> => {
  const finished = await runProgram(
    {
      argv: agent.command,
      cwd: agent.cwd,
      env: agent.env ?? {},
      timeoutMs: agent.timeout,
      outputLimitBytes: agent.output_limit,
    },
    prompt,
    surroundings,
  )
  if (finished.exitCode !== 0) {
    const message = `${agent.command[0]} ${endingOf(finished)}`
    const last = lastLines(finished)
    throw new DoorwardError('agent-failed', message, {
      localDetail: last === '' ? message : `${message}: ${last}`,
    })
  }
  return finished.cut
    ? { text: cutText(finished.stdout, agent.output_limit), cut: true }
    : { text: finished.stdout.toString('utf8'), cut: false }
}
