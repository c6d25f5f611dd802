import { Argument, Command, CommanderError, Help, Option } from 'commander'
import { tunnelPrograms } from '../shared/api/tunnel.ts'
import { version } from '../shared/version.ts'
import {
  addAgentCommands,
  addConfigCommands,
  addDaemonCommands,
  addEventsCommands,
  addSessionCommands,
  addWorkspaceCommands,
} from './commands/groups.ts'
import { addBotCommands } from './commands/bot/bot.ts'
import { addScheduleCommands } from './commands/schedule/schedule.ts'
import { addOauthCommands } from './commands/oauth/oauth.ts'
import { addWebhookCommands } from './commands/webhook/webhook.ts'
import { endWithError, usageError } from './errors.ts'
import { exitUsage } from './exit-code.ts'
import { run, wholeNumber } from './run-action.ts'
import { exitOnEpipe } from './terminal/output.ts'

/*
 * The commands of the command line, and the file of each. A command's file is loaded only when it is used, so
 * that `--version` and a usage error stay fast.
 */

/**
 * `words` are the arguments before `--`, `afterDashes` those after it, which may belong to another program.
 * Only a group in `words` gets its commands: creating all takes longer than running most of them.
 */
export const createProgram = (
  words: readonly string[],
  afterDashes: readonly string[] | undefined,
): Command => {
  const json = words.includes('--json')
  const program: Command = new Command('doorward')
    .description(
      'A local gateway: keeps your OAuth tokens, and lets signed webhooks trigger your agents',
    )
    .option('--home <dir>', 'home folder (default: $DOORWARD_HOME, else ~/.doorward)')
    .option('--json', 'print JSON with the field names of the API')
    .option('-q, --quiet', 'no progress and no hints on standard error')
    .option('--no-color', 'no colour (also: NO_COLOR=1)')
    .option('--no-start', 'do not start the daemon if it does not run')
    .option('--version', 'print the version')
    .on('option:version', () => {
      exitOnEpipe()
      process.stdout.write(json ? `${JSON.stringify({ version })}\n` : `${version}\n`)
      throw new CommanderError(0, 'commander.version', version)
    })
    .helpOption('-h, --help', 'show help')
    // Our own help command also shows the documentation.
    .helpCommand(false)
    .configureHelp({
      ...helpLayout,
      formatHelp: (command, helper) =>
        `${Help.prototype.formatHelp.call(helper, command, helper)}${command.parent ? globalOptions : ''}`,
    })
    .exitOverride()
    .configureOutput({
      outputError: () => undefined,
      writeOut: (text) => {
        exitOnEpipe()
        const { isTTY, columns } = process.stdout
        process.stdout.write(isTTY ? fitted(text, columns || 80) : text)
      },
      writeErr: (text) => void (json || process.stderr.write(text)),
    })
    .addHelpText(
      'after',
      '\nMore: doorward help <topic>, for example getting-started or webhooks\n\nExit codes: 0 done, 1 failed, 2 usage, 3 daemon not reachable, 4 login needed,\n130 interrupted',
    )

  addGroups(program, words, afterDashes)
  addCommands(program)
  return program
}

/** Adds the groups, in the order of the help; only those that `words` name get their commands. */
const addGroups = (
  program: Command,
  words: readonly string[],
  afterDashes: readonly string[] | undefined,
): void => {
  program
    .command('init')
    .description('write the sample configuration and .env with a generated webhook secret')
    .action(run(async () => (await import('./commands/init.ts')).init))
  const daemon = program.command('daemon').description('start, stop and watch the daemon')
  const oauth = program
    .command('oauth')
    .description('log in to and out of providers, and pass tokens to programs')
  const bot = program.command('bot').description('GitHub Apps of your own, made in one press')
  const webhook = program.command('webhook').description('list, test and add webhooks')
  const agent = program.command('agent').description('add agents')
  const events = program
    .command('events')
    .description('list events and their outcome, newest first')
    .argument('[command...]')
    .option('-f, --follow', 'print changes until interrupted (--json: JSON lines)')
    .option('--webhook <path>', 'only events of this webhook')
    .option('--state <state>', 'only events in this state: running, done, failed, …')
    .option('--since <time>', 'also past events of the history: 24h, 7d, 2026-06-01')
    .option('--rule <name>', 'only events of this rule, past ones too')
    .option('--search <text>', 'only events with this text in a name or title, past ones too')
    .option('--limit <n>', 'the maximum number', wholeNumber, 20)
    .option('--all', 'also reloads of the configuration')
    .usage('[options] | show | open | retry | cancel | forget <id>')
    .action(run(async () => (await import('./commands/events/list.ts')).listEvents))
  const session = program
    .command('session')
    .description('list, continue and forget the conversations of agents')
  const workspace = program
    .command('workspace')
    .description('list and remove the mirrors of repositories')
  const schedule = program
    .command('schedule')
    .description('what runs at a time: list, add, run, pause')
  const config = program.command('config').description('check and edit the configuration')

  // The words that a shell wants completed come after `--`.
  const all = words.includes('__complete') ? [...words, ...(afterDashes ?? [])] : words
  if (all.includes('daemon')) addDaemonCommands(daemon)
  if (all.includes('oauth')) addOauthCommands(oauth, afterDashes)
  if (all.includes('bot')) addBotCommands(bot)
  if (all.includes('webhook')) addWebhookCommands(webhook)
  if (all.includes('agent')) addAgentCommands(agent, afterDashes)
  if (all.includes('events')) addEventsCommands(events)
  if (all.includes('session')) addSessionCommands(session)
  if (all.includes('workspace')) addWorkspaceCommands(workspace)
  if (all.includes('schedule')) addScheduleCommands(schedule)
  if (all.includes('config')) addConfigCommands(config)
}

/** The views of the page. */
const viewNames = [
  'start',
  'events',
  'waiting',
  'rules',
  'schedules',
  'sessions',
  'logins',
  'usage',
  'machines',
  'problems',
] as const

/** Adds the commands that belong to no group. */
const addCommands = (program: Command): void => {
  program
    .command('tray')
    .description('start the tray: icon, menu and desktop notifications')
    .option('--wait', 'wait for a panel that shows tray icons without a limit (default: 15 s)')
    .action(run(async () => (await import('./commands/tray.ts')).startTray))
  program
    .command('open')
    .description('open the page of doorward in the browser')
    .addArgument(new Argument('[view]', 'one view of it').choices(viewNames))
    .option('--no-browser', 'print a link that works once, for five minutes')
    .action(run(async () => (await import('./commands/open.ts')).openPage))
  program
    .command('status')
    .description('show everything on one screen; exits with 3 if the daemon does not run')
    .action(run(async () => (await import('./commands/status.ts')).showStatus))
  program
    .command('usage')
    .description('show what runs used and cost, as their programs say')
    .option('--since <time>', 'a time ago or a day: 24h, 30d, 2026-06-01', '30d')
    .addOption(
      new Option('--by <what>', 'the groups')
        .choices(['rule', 'agent', 'model', 'day'])
        .default('rule'),
    )
    .action(run(async () => (await import('./commands/usage.ts')).showUsage))
  program
    .command('tunnel')
    .description('bring senders to your webhooks with tailscale, cloudflared, ngrok or zrok')
    .addArgument(
      new Argument('[action]', 'what to do')
        .choices(['start', 'stop', 'status'])
        .default('start', 'start'),
    )
    .addOption(
      new Option('--with <program>', 'the program (default: the first that is installed)').choices(
        tunnelPrograms,
      ),
    )
    .addHelpText('after', tunnelHelp)
    .action(run(async () => (await import('./commands/tunnel.ts')).tunnel))
  program
    .command('setup')
    .description('print how an agent program, such as Claude Code, sets doorward up for you')
    .requiredOption('--for-agent', 'print the text that the agent follows, question by question')
    .addHelpText('after', setupHelp)
    .action(run(async () => (await import('./commands/help.ts')).printSetup))
  program
    .command('doctor')
    .description('check for problems and print their fixes; exits with 1 on an error')
    .argument('[webhook...]', 'with --privacy: paths of webhooks (default: each enabled one)')
    .option('--online', 'also ask targets, providers and the tunnel; sends no message')
    .addOption(
      new Option(
        '--privacy',
        'instead, send a canary through webhook, agent and target, and search files for it',
      ).conflicts('online'),
    )
    .option('-y, --yes', 'with --privacy: run agents and send answers without asking')
    .addHelpText('after', doctorHelp)
    .action(run(async () => (await import('./commands/doctor/doctor.ts')).doctor))
  program
    .command('help')
    .description('show help for a command, a topic or an error code')
    .argument('[name...]', 'such as: events retry, webhooks, signature-invalid')
    .action(
      run(async () => {
        const { showHelp } = await import('./commands/help.ts')
        return async (context, words) => showHelp(context, words, program)
      }),
    )
  program
    .command('completion')
    .description('print a completion script for commands, options and current names')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', completionHelp)
    .action(run(async () => (await import('./commands/completion.ts')).printCompletion))
  program
    .command('__complete [words...]', { hidden: true })
    .action(async (words: string[]) =>
      (await import('./commands/completion.ts')).complete(program, words),
    )
}

/** In one line: eight on every page hide those of the command. `doorward --help` explains them. */
const globalOptions =
  '\nGlobal options: --home <dir> --json -q --no-color --no-start (doorward --help)\n'

const tunnelHelp = `
The program is yours, with its own login. It leads to server.public_port, which
serves webhooks and nothing else; where none is set, one is chosen. The address
goes to server.public_url and to the hooks that webhook connect made. The tunnel
ends with the daemon, and starts with it again, until: doorward tunnel stop`

const setupHelp = `
Start your agent program in a terminal, and say: run "doorward setup --for-agent"
and follow it. Without an agent: doorward help getting-started`

const doctorHelp = `
It changes nothing and starts no daemon. What only the daemon can check (agents,
logins, targets, the tunnel) is skipped while none runs. A skipped check says
why. Agent programs are run with --version only.
--json contains no secret, token, account or address of yours: it can be shared.`

const completionHelp = `
To install it for every shell:

  doorward completion bash > ~/.local/share/bash-completion/completions/doorward
  doorward completion zsh > "\${fpath[1]}/_doorward"
  doorward completion fish > ~/.config/fish/completions/doorward.fish

Without the package bash-completion, in ~/.bashrc:

  eval "$(doorward completion bash)"`

/** Runs the command that the arguments name, and sets the exit code. */
export const runProgram = async (args: readonly string[]): Promise<void> => {
  const { own, rest } = splitAtDashes(args)
  const json = own.includes('--json')
  const program = createProgram(own, rest)
  try {
    if (rest === undefined && isAlone(program, own)) {
      await run(async () => (await import('./commands/init.ts')).welcome)(program)
      return
    }
    if (rest === undefined && isExec(own)) {
      const { missingDashes } = await import('./commands/oauth/exec.ts')
      throw missingDashes()
    }
    await program.parseAsync(args, { from: 'user' })
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) return endWithError(thrown, json)
    const isUnknown = thrown.code === 'commander.unknownCommand'
    const error = usageError(thrown, isUnknown ? createProgram(groups, rest) : program, own)
    if (error) await endWithError(error, json, exitUsage)
  }
}

/** A program with these words has all commands. */
const groups = ['daemon', 'oauth', 'webhook', 'agent', 'events', 'session', 'workspace', 'config']

/** Without `--`, options of the command would be parsed as ours: `exec github gh --version`. */
const isExec = (args: readonly string[]): boolean =>
  / oauth exec /.test(` ${args.join(' ')} `) &&
  !args.some((word) => /^(-h|--help)$/.test(word)) &&
  args.find((word) => !word.startsWith('-')) !== 'help'

/** `doorward` without a command, at most with global options. */
const isAlone = (program: Command, args: readonly string[]): boolean => {
  const names = new Set(program.commands.map((command) => command.name()))
  if (args.some((word) => names.has(word) || /^(-h|--help|--version)$/.test(word))) return false
  const { operands, unknown } = program.parseOptions([...args])
  return operands.length === 0 && unknown.length === 0
}

/** Splits at the first `--`; `rest` is undefined without one. */
const splitAtDashes = (
  args: readonly string[],
): { readonly own: readonly string[]; readonly rest: readonly string[] | undefined } => {
  const at = args.indexOf('--')
  return at === -1
    ? { own: args, rest: undefined }
    : { own: args.slice(0, at), rest: args.slice(at + 1) }
}

/** Columns that a description needs to be printed beside its term, not below. */
const minDescriptionWidth = 30
const indent = '      '

/** The layout of help, also for narrow terminals. */
const helpLayout = {
  minWidthToWrap: 20,
  formatItem: (term: string, termWidth: number, description: string, helper: Help): string => {
    const width = helper.helpWidth ?? 80
    if (description === '' || width - termWidth - 4 >= minDescriptionWidth)
      return Help.prototype.formatItem.call(helper, term, termWidth, description, helper)
    const below = helper.boxWrap(description, width - indent.length)
    return `  ${term}\n${below.replace(/^/gm, indent)}`
  },
}

/** The columns that our help texts are written for. */
const helpColumns = 80

/** Wraps the paragraphs of a help text. Lines that begin with a space are for copying, and stay. */
export const fitted = (text: string, columns: number): string =>
  columns >= helpColumns
    ? text
    : text
        .replace(/(?<=^\S.*)\n(?=\S)/gm, ' ')
        .replace(/^\S.*$/gm, (line) => (line.length > columns ? broken(line, columns) : line))

const broken = (line: string, columns: number): string =>
  line.replace(new RegExp(`(.{1,${columns}})(?: +|$)`, 'g'), '$1\n').trimEnd()
