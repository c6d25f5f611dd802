#!/usr/bin/env node
import { writeSync } from 'node:fs'
import {
  Argument,
  Command,
  CommanderError,
  InvalidArgumentError,
  Option,
  type OptionValues,
} from 'commander'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { millisecondsOf } from '../shared/units.ts'
import { version } from '../shared/version.ts'
import type { Context, GlobalOptions } from './context.ts'
import { exitCodeOf, exitFailed, exitInterrupted, exitUsage } from './exit-code.ts'
import type { TokenOptions } from './oauth-token.ts'
import { reportError } from './report-error.ts'
import { splitAtDashes } from './split-at-dashes.ts'

/*
 * The command line: what there is, and which file does it. A command's file is loaded when it is used,
 * so that `--version` and a usage error stay quick.
 */

/** Makes an action of a command's function: it gets the context, the arguments and the options. */
const run =
  <Options extends OptionValues>(
    load: () => Promise<(context: Context, args: string[], options: Options) => unknown>,
  ) =>
  async (...all: unknown[]): Promise<void> => {
    endQuietlyWhenClosed()
    const command = all.at(-1) as Command
    const [{ createContext }, action] = await Promise.all([import('./context.ts'), load()])
    const context = createContext(command.optsWithGlobals<GlobalOptions>(), wordsOf(command))
    await action(context, command.processedArgs.flat() as string[], command.opts<Options>())
  }

/** `oauth list`: a command's own name after those of its groups, without the program's. */
const wordsOf = (command: Command): string =>
  command.parent ? `${wordsOf(command.parent)} ${command.name()}`.trim() : ''

const wholeNumber = (text: string): number => {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It is a number from 1 to 999999.')
}

const seconds = (text: string): number => {
  const ms = millisecondsOf(/^\d+$/.test(text) ? `${text}s` : text)
  if (ms <= 30 * 86_400_000) return Math.ceil(ms / 1000)
  throw new InvalidArgumentError('It is a duration such as 60s, 10m or 1h, of 30d at most.')
}

const minValidity = () =>
  new Option(
    '--min-validity <duration>',
    "for how long the token must still be valid (default: 60s, the daemon's)",
  ).argParser(seconds)

const listed = (text: string, before: string[] = []): string[] => [...before, text]

/**
 * `words` are the arguments before `--`, `afterDashes` those behind it, which may be those of another
 * program. The commands of a group are added when the group is named: to make all of them takes longer
 * than to run most of them.
 */
const createProgram = (
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
      printAtOnce(`${version}\n`)
      throw new CommanderError(0, 'commander.version', version)
    })
    .helpOption('-h, --help', 'show help')
    // Ours, below, shows pages of the documents too.
    .helpCommand(false)
    .configureHelp({
      showGlobalOptions: true,
      // Not those of a group that is a command too: `events --limit` is nothing for `events retry`.
      visibleGlobalOptions: ({ parent }) => (parent ? [...program.options] : []),
    })
    .exitOverride()
    .configureOutput({
      outputError: () => undefined,
      writeOut: (text) => {
        endQuietlyWhenClosed()
        process.stdout.write(text)
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

const addDaemonCommands = (daemon: Command): void => {
  daemon
    .command('start')
    .description('start the daemon; returns when it answers')
    .option('--foreground', 'be the daemon; ends with 78 on a configuration that cannot be used')
    .action(run(async () => (await import('./daemon-start.ts')).startDaemon))
  daemon
    .command('stop')
    .description('let the daemon finish what it has accepted, then end it')
    .action(run(async () => (await import('./daemon-stop.ts')).stopDaemon))
  daemon
    .command('restart')
    .description('start the daemon anew, also after an upgrade; no webhook is refused meanwhile')
    .action(run(async () => (await import('./daemon-restart.ts')).restartDaemon))
  daemon
    .command('reload')
    .description('read the configuration now; the daemon also does when a file changes')
    .action(run(async () => (await import('./daemon-reload.ts')).reloadDaemon))
  daemon
    .command('status')
    .description('say whether the daemon runs; ends with 3 when it does not')
    .action(run(async () => (await import('./daemon-status.ts')).showDaemonStatus))
  daemon
    .command('logs')
    .description('the last 50 lines of the log; with --json as they are')
    .option('-f, --follow', 'go on with new lines until interrupted')
    .action(run(async () => (await import('./daemon-logs.ts')).showLogs))
  daemon
    .command('install')
    .description('start the daemon at login, and now; what starts it is written for you alone')
    .option('--tray', 'the tray as well')
    .addHelpText('after', installHelp)
    .action(run(async () => (await import('./daemon-install.ts')).installDaemon))
  daemon
    .command('uninstall')
    .description('no more at login; a daemon that systemd or launchd runs is stopped')
    .option('--tray', 'the tray as well')
    .action(run(async () => (await import('./daemon-uninstall.ts')).uninstallDaemon))
}

const addOauthCommands = (oauth: Command, afterDashes: readonly string[] | undefined): void => {
  oauth
    .command('login')
    .description('log in to a provider in the browser')
    .argument('<provider>', 'google, github, slack, or a name under providers: in gateway.yaml')
    .option('--client-id <id>', 'OAuth client id; remembered for the next login')
    .addOption(
      new Option(
        '--client-secret <secret>',
        'OAuth client secret; other users can see it, prefer --client-secret-stdin',
      ).conflicts('clientSecretStdin'),
    )
    .addOption(
      new Option(
        '--client-secret-stdin',
        'read the client secret from standard input; a terminal is asked for it',
      ).conflicts('paste'),
    )
    .option('--scopes <a,b>', "what to ask for (default: the provider's)")
    .option('--no-browser', 'print the URL, open no browser')
    .option('--paste', 'take the redirected URL from standard input (no browser on this machine)')
    .addOption(
      new Option(
        '--device',
        'enter a code in any browser, on any machine (where the provider and your app allow it)',
      ).conflicts('paste'),
    )
    .addHelpText('after', loginHelp)
    .action(run(async () => (await import('./oauth-login.ts')).login))
  oauth
    .command('list')
    .description('authorized providers: account, scopes, expiry, status')
    .addHelpText('after', listHelp)
    .action(run(async () => (await import('./oauth-list.ts')).listTokens))
  oauth
    .command('logout')
    .description('revoke and remove the tokens of a provider')
    .argument('<provider>', 'a provider of oauth list')
    .option('--forget', 'forget the OAuth client too: id and secret')
    .addHelpText('after', logoutHelp)
    .action(run(async () => (await import('./oauth-logout.ts')).logout))

  oauth
    .command('token')
    .description('print a fresh access token, and nothing else')
    .argument('<provider>', 'a provider of oauth list')
    .addOption(minValidity())
    .addHelpText('after', tokenHelp)
    .action(run(async () => (await import('./oauth-token.ts')).printToken))
  oauth
    .command('exec')
    .description('run a command with fresh access tokens in its environment')
    .argument('<provider...>', 'github for GITHUB_TOKEN, or github=NAME; several are fine')
    .addOption(minValidity())
    .usage('[options] <provider>[=NAME]... -- command [args...]')
    .addHelpText(
      'after',
      `
Example:
  doorward oauth exec github=GH_TOKEN -- gh api user

It ends as the command ends; with 127 when there is no such command, and with
126 when it cannot be run.`,
    )
    .action(
      run(async () => {
        const { exec } = await import('./oauth-exec.ts')
        return (context, words, options: TokenOptions) => {
          const providers = words.slice(0, words.length - (afterDashes?.length ?? 0))
          return exec(context, providers, { ...options, command: afterDashes })
        }
      }),
    )
  oauth
    .command('git-credential')
    .description('be a credential helper of git for the hosts of github')
    .argument('<operation>', 'get, store or erase: git adds it')
    .addHelpText('after', gitCredentialHelp)
    .action(run(async () => (await import('./oauth-git-credential.ts')).gitCredential))
}

const addWebhookCommands = (webhook: Command): void => {
  webhook
    .command('list')
    .description('definitions, URLs, secrets set or not, last event')
    .action(run(async () => (await import('./webhook-list.ts')).listWebhooks))
  webhook
    .command('add')
    .description('add a webhook to webhooks.yaml, with a secret in .env')
    .argument('<preset>', 'who sends: github, gitlab, stripe, slack, shopify, linear, …')
    .option('--path <path>', 'URL path (default: /webhook/<preset>)')
    .option('--agent <agent>', 'who answers (default: the only one there is)')
    .option('--filter <path=value>', 'condition on the payload; can be repeated', listed)
    .option('--deliver-to <target>', 'where the answer goes; can be repeated', listed)
    .option('--prompt <text>', "the prompt (default: the preset's)")
    .option('--secret-env <name>', 'variable of the secret (default: made of the path)')
    .option('--secret-stdin', "read the sender's secret; a terminal is asked for it")
    .option('--show-secret', 'print the secret, to paste it at the sender')
    .option('--print', 'print the entry, write nothing')
    .action(run(async () => (await import('./webhook-add.ts')).addWebhook))
  webhook
    .command('send')
    .description('sign a payload as the sender would, and send it to the running daemon')
    .argument('[path]', 'path of the webhook, for example /webhook/github')
    .argument('[file]', 'file with the payload, - for standard input')
    .option('--sample [name]', 'a built-in payload; without a name: list them')
    .option('--event <name>', "kind of event, for the sender's header: push, pull_request, …")
    .option('--wait', "wait until the event is finished and print the agent's answer")
    .action(run(async () => (await import('./webhook-send.ts')).sendWebhook))

  webhook
    .command('explain')
    .description('what would become of a delivery and why: nothing is run, sent or noted')
    .argument('<path>', 'path of the webhook, for example /webhook/github')
    .argument('[file]', 'file with the payload, - for standard input')
    .option('--sample <name>', 'a built-in payload (webhook send --sample lists them)')
    .option(
      '--header <line>',
      "a header of the delivery, as 'Name: value'; can be repeated",
      listed,
    )
    .action(run(async () => (await import('./webhook-explain.ts')).explainWebhook))
  webhook
    .command('learn')
    .description(
      'wait for the next verified delivery; print its paths and types, without values, and a filter and prompt to begin with',
    )
    .argument('<path>', 'path of the webhook')
    .option('--from <file>', 'learn from a payload in a file (- for standard input) instead')
    .action(run(async () => (await import('./webhook-learn.ts')).learnWebhook))
}

const addAgentCommands = (agent: Command, afterDashes: readonly string[] | undefined): void => {
  agent
    .command('add')
    .description('add an agent to agents.yaml')
    .argument('<kind>', 'claude, codex, gemini, opencode, llm, openai, http, command or echo')
    .argument('[name...]', 'its name (default: the kind); after --: its flags, or its command')
    .option('--model <name>', 'the model it uses')
    .option('--base-url <url>', 'openai: what stands before /chat/completions')
    .option('--api-key-env <name>', 'openai: variable of the API key')
    .option('--url <url>', 'http: where the prompt is posted to')
    .option('--answer-path <path>', 'http: where in the JSON the answer is')
    .option('--cwd <dir>', 'working folder (default: an empty one)')
    .option('--env <NAME=value>', 'added variable; can be repeated', listed)
    .option('--timeout <duration>', 'default: 10m')
    .option('--print', 'print the entry, write nothing')
    .usage('[options] <kind> [name] [-- args...]')
    .addHelpText('after', agentHelp)
    .action(
      run(async () => {
        const { addAgent } = await import('./agent-add.ts')
        return async (context, words, options) =>
          addAgent(context, words.slice(0, words.length - (afterDashes?.length ?? 0)), {
            ...options,
            afterDashes,
          })
      }),
    )
}

const addEventsCommands = (events: Command): void => {
  events
    .command('show')
    .description('one event with its prompt and answer')
    .argument('<id>')
    .action(run(async () => (await import('./events-show.ts')).showEvent))
  events
    .command('open')
    .description('open the page of an event in the browser')
    .argument('<id>')
    .option('--no-browser', 'print a link to it, which works once and for a minute')
    .action(run(async () => (await import('./events-open.ts')).openEvent))

  events
    .command('retry')
    .description(
      'run a failed event again: its agent, or only what was not delivered. Prompt and targets are those of the event; the agent of that name, tokens and addresses are as configured now',
    )
    .argument('<id>')
    .option('--wait', "wait until it is finished and print the agent's answer")
    .action(run(async () => (await import('./events-retry.ts')).retryEvent))
}

const addConfigCommands = (config: Command): void => {
  config
    .command('check')
    .description('every problem at once as file:line:column; ends with 1 when there is one')
    .action(run(async () => (await import('./config-check.ts')).checkConfiguration))
  config
    .command('path')
    .description('print the folder of the configuration')
    .action(run(async () => (await import('./config-path.ts')).printConfigPath))
  config
    .command('edit')
    .description('open a file in $VISUAL or $EDITOR, and check it afterwards')
    .argument('[name]', 'webhooks, agents, gateway or env (default: webhooks)')
    .action(run(async () => (await import('./config-edit.ts')).editConfiguration))
  config
    .command('schema')
    .description('print the JSON Schema of a configuration file')
    .argument('<name>', 'webhooks, agents or gateway')
    .action(run(async () => (await import('./config-schema.ts')).printSchema))
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

const installHelp = `
Linux: a systemd user unit, or without systemd an entry of the desktop;
macOS: a launch agent; Windows: a script in the Startup folder. systemd and
launchd start it again when it fails; when that is of no use, they tell you.

The agents get the PATH of the shell that you run this in. Secrets come from
.env of the home folder. Run it again after an upgrade of Node or doorward.`

const agentHelp = `
Examples:
  doorward agent add claude reviewer --model sonnet -- --tools Read,Grep
  doorward agent add openai local --base-url http://127.0.0.1:11434/v1 \\
    --model llama3.2
  doorward agent add command words -- wc -w`

const loginHelp = `
The first login needs an OAuth client of your own; without one, the command says
where to make it. Client id and secret are remembered once a login has worked.

Examples:
  doorward oauth login github --client-id ID --client-secret-stdin
  doorward oauth login github
  doorward oauth login github --scopes repo,read:org

Over ssh it opens no browser, and takes the address that the one on your machine
ends at. --json prints two lines: the started login, and its outcome.`

const listHelp = `
STATUS is ok, expired (it is renewed when it is asked for, or cannot be renewed)
or needs-login (only a new login helps). EXPIRES is that of the access token,
which the daemon renews by itself before its end where the provider allows it.`

const logoutHelp = `
The tokens are revoked at the provider and removed here. Where it cannot be
reached they are removed all the same, and the revocation is tried again for 30
days. The client stays known, so that the next login needs no options.`

const tokenHelp = `
Examples:
  TOKEN=$(doorward oauth token github) || exit
  curl -H @- https://api.github.com/user <<END
  Authorization: Bearer $(doorward oauth token github)
  END

It ends with 4 when a login is needed. A token on a command line can be seen by
other users of this machine: oauth exec puts it into the environment instead.`

const gitCredentialHelp = `
To install it for github.com, and in the same way for gist.github.com:

  git config --global credential.https://github.com.helper \\
    '!doorward oauth git-credential'

Helpers that you have already are asked before it, and are given the token to
store. An empty one in front leaves them out:

  git config --global --replace-all credential.https://github.com.helper ''
  git config --global --add credential.https://github.com.helper \\
    '!doorward oauth git-credential'

GitHub Enterprise: the host is the one of providers.github in gateway.yaml, or
of another provider there that has dialect: github. store and erase do nothing,
for it is doorward that keeps the tokens.`

/** What the argument parser found wrong, as an error of ours; help and version are no errors. */
const usageError = (
  error: CommanderError,
  program: Command,
  args: readonly string[],
): DoorwardError | undefined => {
  if (error.exitCode === 0) return undefined
  if (error.code === 'commander.help') return new DoorwardError('usage', 'a command is missing')
  const message = error.message.replace(/^error: /, '')
  const [, suggestion] = /\n\((Did you mean .*)\)$/s.exec(message) ?? []
  return new DoorwardError('usage', message.split('\n')[0] ?? message, {
    hint: suggestion ? lowerFirst(suggestion) : `${commandAt(program, args)} --help`,
  })
}

/** `doorward oauth login`: as far as the words that were typed name commands. */
const commandAt = (program: Command, args: readonly string[]): string => {
  let command = program
  const names = [program.name()]
  for (const word of args) {
    const next = command.commands.find((known) => known.name() === word)
    if (!next) continue
    command = next
    names.push(word)
  }
  return names.join(' ')
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** A reader that has seen enough (`| head -1`) is no failure. */
const endQuietlyWhenClosed = (): void => {
  if (process.stdout.listenerCount('error') > 0) return
  process.stdout.on('error', (error) => {
    if (systemCode(error) === 'EPIPE') process.exit()
    // As on a full disk: what was printed is not whole, and nothing more can be.
    process.stderr.write(`doorward: cannot write to standard output (${systemCode(error)})\n`)
    process.exit(exitFailed)
  })
  process.stderr.on('error', () => undefined)
}

/** Without its `--`, the options of the command would be taken for ours: `exec github gh --version`. */
const isExec = (args: readonly string[]): boolean =>
  / oauth exec /.test(` ${args.join(' ')} `) &&
  !args.some((word) => /^(-h|--help)$/.test(word)) &&
  args.find((word) => !word.startsWith('-')) !== 'help'

/** `doorward` with no command, and with options at most that every command takes. */
const isAlone = (program: Command, args: readonly string[]): boolean => {
  const names = new Set(program.commands.map((command) => command.name()))
  if (args.some((word) => names.has(word) || /^(-h|--help|--version)$/.test(word))) return false
  const { operands, unknown } = program.parseOptions([...args])
  return operands.length === 0 && unknown.length === 0
}

/** Without `process.stdout`, which takes a tenth of the time of so short a command. */
const printAtOnce = (text: string): void => {
  try {
    writeSync(1, text)
  } catch (error) {
    // A pipe that is full for now.
    if (systemCode(error) !== 'EPIPE') process.stdout.write(text)
  }
}

const main = async (args: readonly string[]): Promise<void> => {
  const { own, rest } = splitAtDashes(args)
  const json = own.includes('--json')
  const program = createProgram(own, rest)
  try {
    if (rest === undefined && isAlone(program, own)) {
      await run(async () => (await import('./welcome.ts')).welcome)(program)
      return
    }
    if (rest === undefined && isExec(own)) {
      const { missingDashes } = await import('./oauth-exec.ts')
      throw missingDashes()
    }
    await program.parseAsync(args, { from: 'user' })
  } catch (thrown) {
    const error = thrown instanceof CommanderError ? usageError(thrown, program, own) : thrown
    if (error === undefined) return
    endQuietlyWhenClosed()
    process.exitCode = thrown instanceof CommanderError ? exitUsage : exitCodeOf(error)
    if (process.exitCode !== exitInterrupted) reportError(error, json)
  }
}

void main(process.argv.slice(2))
