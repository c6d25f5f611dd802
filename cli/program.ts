import { Argument, Command, CommanderError, Option } from 'commander'
import { version } from '../shared/version.ts'
import { addAgentCommands } from './commands/agent.ts'
import { addConfigCommands } from './commands/config.ts'
import { addDaemonCommands } from './commands/daemon.ts'
import { addEventsCommands } from './commands/events.ts'
import { addOauthCommands } from './commands/oauth.ts'
import { addWebhookCommands } from './commands/webhook.ts'
import { endQuietlyWhenClosed } from './end-quietly.ts'
import { fitted, helpLayout } from './help-layout.ts'
import { wholeNumber } from './option-values.ts'
import { printAtOnce } from './print-at-once.ts'
import { run } from './run-action.ts'

/*
 * The command line: what there is, and which file does it. A command's file is loaded when it is used,
 * so that `--version` and a usage error stay quick.
 */

/**
 * `words` are the arguments before `--`, `afterDashes` those behind it, which may be those of another
 * program. The commands of a group are added when the group is named: to make all of them takes longer
 * than to run most of them.
 */
export const createProgram = (
  words: readonly string[],
  afterDashes: readonly string[] | undefined,
): Command => {
  const json = words.includes('--json')
  const program: Command = new Command('doorward')
    .description(
      'A local gateway: keeps your OAuth tokens, and lets signed webhooks wake your agents',
    )
    .option('--home <dir>', 'home folder (default: $DOORWARD_HOME, else ~/.doorward)')
    .option('--json', 'print JSON with the field names of the API')
    .option('-q, --quiet', 'no progress and no hints on standard error')
    .option('--no-color', 'no colour (also: NO_COLOR=1)')
    .option('--no-start', 'do not start the daemon when it is needed and does not run')
    .option('--version', 'print the version')
    .on('option:version', () => {
      printAtOnce(json ? `${JSON.stringify({ version })}\n` : `${version}\n`)
      throw new CommanderError(0, 'commander.version', version)
    })
    .helpOption('-h, --help', 'show help')
    // Ours, below, shows pages of the documents too.
    .helpCommand(false)
    .configureHelp({
      ...helpLayout,
      showGlobalOptions: true,
      // Not those of a group that is a command too: `events --limit` is nothing for `events retry`.
      visibleGlobalOptions: ({ parent }) => (parent ? [...program.options] : []),
    })
    .exitOverride()
    .configureOutput({
      outputError: () => undefined,
      writeOut: (text) => {
        endQuietlyWhenClosed()
        const { isTTY, columns } = process.stdout
        process.stdout.write(isTTY ? fitted(text, columns || 80) : text)
      },
      writeErr: (text) => void (json || process.stderr.write(text)),
    })
    .addHelpText(
      'after',
      '\nMore: doorward help <topic>, for example getting-started or webhooks\n\nExit codes: 0 done, 1 failed, 2 usage, 3 daemon not reachable, 4 login needed,\n130 interrupted',
    )

  program
    .command('init')
    .description('write the sample configuration and .env with a generated webhook secret')
    .action(run(async () => (await import('./init.ts')).init))

  const daemon = program.command('daemon').description('start, stop and watch the daemon')
  const oauth = program
    .command('oauth')
    .description('log in to providers and out again, and give tokens to programs')
  const webhook = program.command('webhook').description('look at webhooks and try them')
  const agent = program.command('agent').description('add agents')
  const events = program
    .command('events')
    .description('what came in and what became of it, newest first')
    .argument('[command...]')
    .option('-f, --follow', 'print changes from now on until interrupted (--json: JSON lines)')
    .option('--webhook <path>', 'only those of this webhook')
    .option('--state <state>', 'only those in this state: running, done, failed, …')
    .option('--limit <n>', 'how many, at most', wholeNumber, 20)
    .usage('[options] | show <id> | open <id> | retry <id>')
    .action(run(async () => (await import('./events.ts')).listEvents))
  const config = program.command('config').description('check and edit the configuration')
  program
    .command('tray')
    .description('start the tray: icon, menu and desktop notifications')
    .option('--wait', 'wait for a panel that shows tray icons, not only 15 s')
    .action(run(async () => (await import('./tray.ts')).startTray))
  program
    .command('status')
    .description('everything on one screen; ends with 3 when the daemon does not run')
    .action(run(async () => (await import('./status.ts')).showStatus))
  program
    .command('doctor')
    .description(
      'check what can be wrong, and name what mends it; ends with 1 when something is red',
    )
    .argument('[webhook...]', 'with --privacy: paths of webhooks (default: each enabled one)')
    .option('--online', 'ask targets, providers and the tunnel too; no message is sent')
    .addOption(
      new Option(
        '--privacy',
        'only this: send a canary through webhook, agent and target, and search files for it',
      ).conflicts('online'),
    )
    .option('-y, --yes', 'with --privacy: do not ask before agents are run and answers are sent')
    .addHelpText('after', doctorHelp)
    .action(run(async () => (await import('./doctor.ts')).doctor))
  program
    .command('help')
    .description('show help for a command, a topic or an error code')
    .argument('[name...]', 'such as: events retry, webhooks, signature-invalid')
    .action(
      run(async () => {
        const { showHelp } = await import('./help.ts')
        return async (context, words) => showHelp(context, words, program)
      }),
    )
  program
    .command('completion')
    .description('print the completion of a shell: commands, options, and what there is now')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', completionHelp)
    .action(run(async () => (await import('./completion.ts')).printCompletion))
  program
    .command('__complete [words...]', { hidden: true })
    .action(async (words: string[]) => (await import('./complete.ts')).complete(program, words))

  // What a shell asks about stands behind its `--`.
  const all = words.includes('__complete') ? [...words, ...(afterDashes ?? [])] : words
  if (all.includes('daemon')) addDaemonCommands(daemon)
  if (all.includes('oauth')) addOauthCommands(oauth, afterDashes)
  if (all.includes('webhook')) addWebhookCommands(webhook)
  if (all.includes('agent')) addAgentCommands(agent, afterDashes)
  if (all.includes('events')) addEventsCommands(events)
  if (all.includes('config')) addConfigCommands(config)
  return program
}

const doctorHelp = `
It looks and changes nothing, with or without a daemon; what was not checked
says why. Programs of agents are asked for their version.
--json holds no secret, token, account or address of yours: it can be shown.`

const completionHelp = `
To have it in every shell:

  doorward completion bash > ~/.local/share/bash-completion/completions/doorward
  doorward completion zsh > "\${fpath[1]}/_doorward"
  doorward completion fish > ~/.config/fish/completions/doorward.fish

Without the package bash-completion, in ~/.bashrc:

  eval "$(doorward completion bash)"`
