import type { Agent } from './agent-schema.ts'

/*
 * Whether an agent may change files or run programs without a person being asked. Pure: its entry in,
 * the flag that says so out.
 */

type Grant = (args: readonly string[], env: Readonly<Record<string, string>>) => string | undefined

/** The first of these flags that is there, with or without a value. */
const flag =
  (...flags: readonly string[]): Grant =>
  (args) =>
    args.find((arg) => flags.includes(arg.split('=')[0] ?? ''))

/** One of these flags with a value that fits, as `--flag value`, `--flag=value` or `-fvalue`. */
const valued =
  (flags: readonly string[], fits: RegExp): Grant =>
  (args) => {
    for (const [index, arg] of args.entries()) {
      const name = flags.find((known) => arg === known || arg.startsWith(`${known}=`))
      const short = flags.find((known) => /^-\w$/.test(known) && arg.startsWith(known))
      if (name === undefined && short === undefined) continue
      const value = name === arg ? args[index + 1] : arg.slice((name ?? short ?? '').length)
      if (value !== undefined && fits.test(value.replace(/^=/, '')))
        return name === arg ? `${arg} ${value}` : arg
    }
    return undefined
  }

const variable =
  (name: string, fits: RegExp): Grant =>
  (_, env) =>
    fits.test(env[name] ?? '') ? `${name}=${env[name]}` : undefined

/** Flags from the programs' own help; see also `shared/agent-clis.ts`. */
const grants: Readonly<Record<string, readonly Grant[]>> = {
  claude: [
    flag('--dangerously-skip-permissions'),
    valued(['--permission-mode'], /^(bypassPermissions|acceptEdits|auto)$/),
    valued(
      ['--allowedTools', '--allowed-tools'],
      /\b(Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit)\b/,
    ),
  ],
  codex: [
    flag('--dangerously-bypass-approvals-and-sandbox', '--yolo', '--approve-for-me', '--full-auto'),
    valued(['-s', '--sandbox'], /^(danger-full-access|workspace-write)$/),
    valued(['-c', '--config'], /^sandbox_mode\s*=\s*"?(danger-full-access|workspace-write)/),
  ],
  gemini: [
    flag('-y', '--yolo'),
    valued(['--approval-mode'], /^(yolo|auto_edit)$/),
    valued(['--allowed-tools'], /shell|write|replace|edit/i),
  ],
  // An agent of the person's own has permissions of its own; ours, which deny all, are left out for it.
  opencode: [flag('--auto', '--agent'), variable('OPENCODE_PERMISSION', /allow/)],
  llm: [flag('-T', '--tool', '--functions')],
  'cursor-agent': [flag('-f', '--force')],
  aider: [flag('--yes-always', '--yes')],
  goose: [variable('GOOSE_MODE', /^auto$/)],
}

/**
 * The flag (or variable) by which this agent may change files or run programs on its own, or undefined.
 * An agent of kind `command` is looked through for the programs that are known here.
 */
export const permissionOf = (agent: Agent): string | undefined => {
  switch (agent.kind) {
    case 'claude':
    case 'codex':
    case 'gemini':
    case 'opencode':
    case 'llm':
      return granted(agent.kind, agent.args ?? [], agent.env ?? {})
    case 'command': {
      const names = agent.command.map(programName)
      const at = names.findIndex((name) => Object.hasOwn(grants, name))
      return at === -1
        ? undefined
        : granted(names[at] ?? '', agent.command.slice(at + 1), agent.env ?? {})
    }
    case 'echo':
    case 'openai':
    case 'http':
      return undefined
  }
}

const granted = (
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): string | undefined => {
  for (const grant of grants[program] ?? []) {
    const found = grant(args, env)
    if (found !== undefined) return found
  }
  return undefined
}

/** `/usr/bin/claude`, `claude.exe` and `@anthropic-ai/claude-code@2` are claude. */
const programName = (word: string): string => {
  const name = (
    word
      .replace(/@[\d.^~a-z-]*$/, '')
      .split(/[\\/]/)
      .at(-1) ?? ''
  ).replace(/\.(exe|cmd)$/i, '')
  return (
    { 'claude-code': 'claude', 'gemini-cli': 'gemini', 'opencode-ai': 'opencode' }[name] ?? name
  )
}
