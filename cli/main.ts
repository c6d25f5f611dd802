#!/usr/bin/env node
import { Command, CommanderError, InvalidArgumentError, Option, type OptionValues } from 'commander'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { version } from '../shared/version.ts'
import type { Context, GlobalOptions } from './context.ts'
import { exitCodeOf, exitInterrupted, exitUsage } from './exit-code.ts'
import { reportError } from './report-error.ts'

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
    const command = all.at(-1) as Command
    const [{ createContext }, action] = await Promise.all([import('./context.ts'), load()])
    const context = createContext(command.optsWithGlobals<GlobalOptions>())
    await action(context, command.processedArgs.flat() as string[], command.opts<Options>())
  }

const wholeNumber = (text: string): number => {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It is a number from 1 to 999999.')
}

const createProgram = (json: boolean): Command => {
  const program = new Command('doorward')
    .description(
      'A local gateway: keeps your OAuth tokens, and lets signed webhooks wake your agents',
    )
    .option('--home <dir>', 'home folder (default: $DOORWARD_HOME, else ~/.doorward)')
    .option('--json', 'print JSON with the field names of the API')
    .option('-q, --quiet', 'no progress and no hints on standard error')
    .option('--no-color', 'no colour (also: NO_COLOR=1)')
    .option('--no-start', 'do not start the daemon when it is needed and does not run')
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput({
      outputError: () => undefined,
      writeErr: (text) => void (json || process.stderr.write(text)),
    })
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 usage, 3 daemon not reachable, 4 login needed, 130 interrupted',
    )

  program
    .command('init')
    .description('write the sample configuration and .env with a generated webhook secret')
    .action(run(async () => (await import('./init.ts')).init))

  const daemon = program.command('daemon').description('start, stop and watch the daemon')
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
    .description('stop the daemon if it runs, and start it')
    .action(run(async () => (await import('./daemon-restart.ts')).restartDaemon))
  daemon
    .command('status')
    .description('say whether the daemon runs; ends with 3 when it does not')
    .action(run(async () => (await import('./daemon-status.ts')).showDaemonStatus))
  daemon
    .command('logs')
    .description('the last 50 lines of the log; with --json as they are')
    .option('-f, --follow', 'go on with new lines until interrupted')
    .action(run(async () => (await import('./daemon-logs.ts')).showLogs))

  const oauth = program.command('oauth').description('log in to providers and out again')
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
    .action(run(async () => (await import('./oauth-login.ts')).login))
  oauth
    .command('list')
    .description('authorized providers: account, scopes, expiry, status')
    .action(run(async () => (await import('./oauth-list.ts')).listTokens))
  oauth
    .command('logout')
    .description('revoke and remove the tokens of a provider')
    .argument('<provider>')
    .option('--forget', 'forget the OAuth client too')
    .action(run(async () => (await import('./oauth-logout.ts')).logout))

  const webhook = program.command('webhook').description('look at webhooks and try them')
  webhook
    .command('list')
    .description('definitions, URLs, secrets set or not, last event')
    .action(run(async () => (await import('./webhook-list.ts')).listWebhooks))
  webhook
    .command('send')
    .description('sign a payload as the sender would, and send it to the running daemon')
    .argument('[path]', 'path of the webhook, for example /webhook/github')
    .argument('[file]', 'file with the payload, - for standard input')
    .option('--sample [name]', 'a built-in payload; without a name: list them')
    .option('--wait', "wait until the event is finished and print the agent's answer")
    .action(run(async () => (await import('./webhook-send.ts')).sendWebhook))

  const events = program
    .command('events')
    .description('what came in and what became of it, newest first')
    .argument('[command]')
    .option('-f, --follow', 'print changes from now on until interrupted (--json: JSON lines)')
    .option('--webhook <path>', 'only those of this webhook')
    .option('--limit <n>', 'how many, at most', wholeNumber, 20)
    .usage('[options] | show <id>')
    .action(run(async () => (await import('./events.ts')).listEvents))
  events
    .command('show')
    .description('one event with its prompt and answer')
    .argument('<id>')
    .action(run(async () => (await import('./events-show.ts')).showEvent))

  const config = program.command('config').description('check and edit the configuration')
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
    .argument('[name]', 'webhooks, agents or gateway (default: webhooks)')
    .action(run(async () => (await import('./config-edit.ts')).editConfiguration))
  config
    .command('schema')
    .description('print the JSON Schema of a configuration file')
    .argument('<name>', 'webhooks, agents or gateway')
    .action(run(async () => (await import('./config-schema.ts')).printSchema))

  program
    .command('tray')
    .description('start the tray: icon, menu and desktop notifications')
    .action(run(async () => (await import('./tray.ts')).startTray))
  program
    .command('status')
    .description('everything on one screen; ends with 3 when the daemon does not run')
    .action(run(async () => (await import('./status.ts')).showStatus))
  program
    .command('doctor')
    .description('check what can be wrong; so far what an event leaves on disk (--privacy)')
    .argument('[webhook...]', 'paths of webhooks (default: each enabled one)')
    .option('--privacy', 'send a canary through webhook, agent and target, and search files for it')
    .option('-y, --yes', 'do not ask before agents are run and answers are sent')
    .action(run(async () => (await import('./doctor.ts')).doctor))
  return program
}

/** What the argument parser found wrong, as an error of ours; help and version are no errors. */
const usageError = (error: CommanderError): DoorwardError | undefined => {
  if (error.exitCode === 0) return undefined
  if (error.code === 'commander.help') return new DoorwardError('usage', 'a command is missing')
  const message = error.message.replace(/^error: /, '')
  const [, suggestion] = /\n\((Did you mean .*)\)$/s.exec(message) ?? []
  return new DoorwardError('usage', message.split('\n')[0] ?? message, {
    hint: suggestion ? lowerFirst(suggestion) : 'doorward --help',
  })
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** A reader that has seen enough (`| head -1`) is no failure. */
const endQuietlyWhenClosed = (): void => {
  process.stdout.on('error', (error) => {
    if (systemCode(error) === 'EPIPE') process.exit()
    throw error
  })
  process.stderr.on('error', () => undefined)
}

const main = async (args: readonly string[]): Promise<void> => {
  endQuietlyWhenClosed()
  const json = args.includes('--json')
  const program = createProgram(json)
  if (args.length === 0) {
    program.outputHelp()
    return
  }
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (thrown) {
    const error = thrown instanceof CommanderError ? usageError(thrown) : thrown
    if (error === undefined) return
    process.exitCode = thrown instanceof CommanderError ? exitUsage : exitCodeOf(error)
    if (process.exitCode !== exitInterrupted) reportError(error, json)
  }
}

await main(process.argv.slice(2))
