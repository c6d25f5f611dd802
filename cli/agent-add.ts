import { agentSchema } from '../shared/config/agent-schema.ts'
import { agentName } from '../shared/config/schema.ts'
import { missingProgram } from '../shared/config/detect-agents.ts'
import { secretsOf } from '../shared/config/environment.ts'
import { DoorwardError } from '../shared/errors.ts'
import { addEntry } from './add-entry.ts'
import { agentEntry } from './agent-entry.ts'
import { withConfigLock } from './config-lock.ts'
import type { Context } from './context.ts'
import { reloadIfRunning } from './daemon-reload.ts'
import { freePath } from './free-path.ts'
import { type AgentAddOptions, kindOf, newAgent } from './new-agent.ts'
import { type OpenConfig, openConfig } from './open-config.ts'
import { printEntry } from './print-entry.ts'
import { tableLines } from './table.ts'

/**
 * Adds an agent to `agents.yaml` and says what it still needs. Nothing is written when anything is wrong.
 * Throws `usage`, `config-invalid`, `home-unusable`.
 */
export const addAgent = async (
  context: Context,
  [givenKind = '', givenName, ...more]: readonly string[],
  options: AgentAddOptions,
): Promise<void> => {
  const { home, terminal } = context
  if (more.length > 0)
    throw new DoorwardError('usage', `what is ${more.join(' ')}?`, {
      hint: 'put -- before flags of the agent program, or the words of a command',
    })
  const kind = kindOf(givenKind)
  const name = givenName ?? kind
  const [unfit] = agentName.safeParse(name).error?.issues ?? []
  if (unfit) throw new DoorwardError('usage', `${JSON.stringify(name)} is ${unfit.message}`)
  const entry = agentEntry(newAgent(kind, name, options))
  if (options.print) {
    printEntry(terminal, { name }, entry)
    return
  }
  const { open, file, added } = await withConfigLock(home, async () => {
    const opened = await openConfig(home)
    return { open: opened, ...(await writeEntry(opened, kind, name, entry)) }
  })
  const taken = await reloadIfRunning(context)

  const agent = agentSchema.parse(entry.value)
  const missing = await missingProgram(agent, open.env)
  const unset = [options.apiKeyEnv ?? []]
    .flat()
    .filter((variable) => secretsOf([variable], open.env).length === 0)
  if (terminal.json) {
    terminal.printJson({
      name,
      kind,
      file: file.path,
      line: added.line,
      ...(missing && { missing }),
      unset,
      reloaded: taken !== undefined,
    })
    return
  }
  const rows = [
    ['added', `${file.path}:${added.line}`],
    ['agent', `${name} (${kind})`],
  ]
  for (const line of tableLines(rows)) terminal.print(line)
  taken?.tell()
  if (missing)
    terminal.say(`${missing.program} is not on PATH; install it with: ${missing.install}`)
  for (const variable of unset) terminal.say(`put ${variable}=... into ${home.env}`)
  const preset = '/webhook/github'
  const path = freePath(preset, open.config)
  terminal.say(
    `next:\n  doorward webhook add github --agent ${name}${path === preset ? '' : ` --path ${path}`}`,
  )
}

const writeEntry = async (
  open: OpenConfig,
  kind: string,
  name: string,
  { lines, value }: ReturnType<typeof agentEntry>,
) => {
  const file = open.file('agents')
  const { agents } = (file.value ?? {}) as { agents?: Record<string, unknown> | null }
  if (open.config.agents.has(name)) {
    const { line } = file.problemAt(['agents', name], '')
    throw new DoorwardError('usage', `an agent ${name} is there already, at ${file.path}:${line}`, {
      hint: `doorward agent add ${kind} NAME adds another; doorward config edit agents changes that one`,
    })
  }
  const added = addEntry(file.text, 'agents', { lines, expected: { ...agents, [name]: value } })
  open.check('agents', added.text)
  await open.write('agents', added.text)
  return { file, added }
}
