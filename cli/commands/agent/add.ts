import { agentSchema } from '../../../shared/agents/schema.ts'
import { findMissingProgram } from '../../../shared/agents/detect.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { isForModel } from '../../../shared/config/rule.ts'
import { agentName } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { type OpenConfig, openConfig } from '../../../shared/config-edit/open-config.ts'
import {
  type AgentAddOptions,
  agentEntry,
  newAgent,
  parseKind,
  withAgent,
} from '../../../shared/recipes/new-agent.ts'
import { freePath } from '../../../shared/recipes/write-webhook.ts'
import type { Context } from '../../context.ts'
import { printEntry } from '../../terminal/print-entry.ts'
import { tableLines } from '../../terminal/table.ts'
import { reloadIfRunning } from '../daemon/reload.ts'

/**
 * Adds an agent to `agents.yaml` and prints what it still needs. On any error nothing is written.
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
  const kind = parseKind(givenKind)
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
  const missing = await findMissingProgram(agent, open.env)
  const unset = [options.apiKeyEnv ?? []]
    .flat()
    .filter((variable) => listSecrets([variable], open.env).length === 0)
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
  const preset = isForModel(kind) ? 'github-review' : 'github'
  const usual = `/webhook/${preset}`
  const path = freePath(usual, open.config)
  terminal.say(
    `next:\n  doorward webhook add ${preset} --agent ${name}${path === usual ? '' : ` --path ${path}`}`,
  )
}

const writeEntry = async (
  open: OpenConfig,
  kind: string,
  name: string,
  entry: ReturnType<typeof agentEntry>,
) => {
  const file = open.file('agents')
  if (open.config.agents.has(name)) {
    const { line } = file.problemAt(['agents', name], '')
    throw new DoorwardError('usage', `an agent ${name} already exists at ${file.path}:${line}`, {
      hint: `doorward agent add ${kind} NAME adds another; doorward config edit agents changes that one`,
    })
  }
  const added = withAgent(open, name, entry)
  open.check('agents', added.text)
  await open.write('agents', added.text)
  return { file, added }
}
