import type { CliAgent } from '../../../shared/agents/schema.ts'
import { agentClis } from '../../../shared/agents/clis.ts'
import { hasFlag } from '../../../shared/agents/tools.ts'
import type { Usage } from '../../../shared/api/api.ts'
import type { CliOutput } from '../cli-output.ts'
import type { ProcessResult } from '../process.ts'
import type { ProgramSteps } from '../program.ts'
import {
  placeTranscript,
  type SessionPlace,
  type SessionProgram,
  sessionPrograms,
} from './session-programs.ts'
import { findFiles, readOwnFile, type SessionTurn, tooLong, type Transcript } from './transcript.ts'

/** How a program of this agent keeps a conversation, or why it cannot. */
export const findSessionProgram = (
  { kind, args = [], env = {} }: Pick<CliAgent, 'kind' | 'args' | 'env'>,
  usesLogin: (env: Readonly<Record<string, string>>) => boolean,
): SessionProgram | { readonly why: string } => {
  const { program, name } = agentClis[kind]
  const how = sessionPrograms[kind]
  if (!how) return { why: `${program} has no conversations that can be carried` }
  if (hasFlag(args, how.chosenBy))
    return { why: 'args of the agent choose a conversation themselves' }
  // Its login is in the keychain, under a name that depends on the folder of its settings.
  if (kind === 'claude' && process.platform === 'darwin' && usesLogin(env))
    return { why: `on macOS ${name} needs ANTHROPIC_API_KEY for that, in env of its agent` }
  return how
}

/** One run of a program in a conversation: it gets the transcript before, and leaves it afterwards. */
export class SessionRun {
  readonly #how: SessionProgram
  readonly #turn: Pick<SessionTurn, 'limitBytes'>
  readonly #kind: CliAgent['kind']
  readonly earlier: Transcript | undefined
  /** The name of a new conversation, where it is ours. */
  readonly #newId: string | undefined
  #folder: string | undefined
  #path: string | undefined
  #id: string | undefined
  #left: Buffer | 'too-long' | undefined

  constructor(
    kind: CliAgent['kind'],
    how: SessionProgram,
    turn: Pick<SessionTurn, 'limitBytes'>,
    earlier: Transcript | undefined,
  ) {
    this.#kind = kind
    this.#how = how
    this.#turn = turn
    this.earlier = earlier
    this.#newId = earlier ? undefined : how.newId?.()
  }

  /** Flags of the preset that are left out, and those that follow `args`. */
  get flags(): { readonly without: readonly string[]; readonly more: readonly string[] } {
    const { without, begin, resume } = this.#how
    const more = this.earlier ? resume(this.earlier.id) : begin(this.#newId ?? '')
    return { without, more }
  }

  /** Commands of the program around the run. */
  get steps(): ProgramSteps | undefined {
    const { importFrom, exportOf } = this.#how
    if (!exportOf) return undefined
    return {
      before: () => (this.#path === undefined ? undefined : importFrom?.(this.#path)),
      after: (result) => {
        this.noteEnd(toCliOutput(result))
        return this.#id === undefined ? undefined : exportOf(this.#id)
      },
      ended: ({ exitCode, stdout, cut }) => {
        if (exitCode !== 0) return
        this.#left = cut || stdout.length > this.#turn.limitBytes ? 'too-long' : stdout
      },
    }
  }

  /** Puts the transcript into the folder of the run; the program itself finds out that it is damaged. */
  async prepare(place: SessionPlace): Promise<{
    readonly variables: Readonly<Record<string, string>>
    readonly args: readonly string[]
  }> {
    const { variables, args } = this.#how
    this.#folder = place.folder
    if (this.earlier)
      this.#path = await placeTranscript(this.earlier, this.#how, place).catch(() => undefined)
    return {
      variables: variables?.(place.folder) ?? {},
      args: this.earlier ? (args?.(this.#path ?? '') ?? []) : [],
    }
  }

  noteEnd(output: CliOutput): void {
    this.#id ??= this.#how.idOf(output)
  }

  /** Reads what the run has left, before its folder is removed. */
  async finish(): Promise<void> {
    const id = this.#newId ?? this.#id
    const { found } = this.#how
    if (!found || id === undefined || this.#folder === undefined) return
    const paths = await findFiles(this.#folder, found(id))
    const files = await Promise.all(
      paths.map(async (path) => readOwnFile(path, this.#turn.limitBytes)),
    )
    const lengthOf = (file: (typeof files)[number]) =>
      file === 'too-long' ? Number.POSITIVE_INFINITY : (file?.length ?? 0)
    const [longest] = files.toSorted((one, other) => lengthOf(other) - lengthOf(one))
    this.#left = longest
  }

  /** After an answer; `totals` is what the program says of the whole conversation. */
  report(turn: Pick<SessionTurn, 'keep' | 'lose'>, totals: Usage | undefined): void {
    const id = this.#newId ?? this.#id
    const left = this.#left
    if (left === 'too-long') turn.lose(tooLong)
    else if (left && left.length > 0 && id !== undefined)
      turn.keep({ program: this.#kind, id, bytes: left, totals })
    else turn.lose(`${agentClis[this.#kind].program} left no transcript`)
  }
}

const toCliOutput = ({ stdout, stderr, exitCode }: ProcessResult): CliOutput => ({
  stdout: stdout.toString('utf8'),
  stderr: stderr.toString('utf8'),
  exitCode,
})
