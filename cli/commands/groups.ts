import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { listed, run } from '../run-action.ts'

/*
 * The commands of the small groups. The file of a command is loaded only when the command is used.
 */

/** The commands of `doorward agent`. */
export const addAgentCommands = (
  agent: Command,
  afterDashes: readonly string[] | undefined,
): void => {
  agent
    .command('add')
    .description('add an agent to agents.yaml')
    .argument('<kind>', 'claude, codex, gemini, opencode, llm, openai, http, command or echo')
    .argument('[name...]', 'its name (default: the kind); after --: its flags, or its command')
    .option('--model <name>', 'the model it uses')
    .option('--base-url <url>', 'openai: the URL before /chat/completions')
    .option('--api-key-env <name>', 'openai: variable of the API key')
    .option('--url <url>', 'http: the URL that gets the prompt')
    .option('--answer-path <path>', 'http: where in the JSON the answer is')
    .option('--cwd <dir>', 'working folder (default: an empty one)')
    .option('--env <NAME=value>', 'added variable; repeatable', listed)
    .option('--timeout <duration>', 'default: 10m')
    .option('--print', 'print the entry, write nothing')
    .usage('[options] <kind> [name] [-- args...]')
    .addHelpText('after', agentHelp)
    .action(
      run(async () => {
        const { addAgent } = await import('./agent/add.ts')
        return async (context, words, options) =>
          addAgent(context, words.slice(0, words.length - (afterDashes?.length ?? 0)), {
            ...options,
            afterDashes,
          })
      }),
    )
}

const agentHelp = `
Examples:
  doorward agent add claude reviewer --model sonnet -- --tools Read,Grep
  doorward agent add openai local --base-url http://127.0.0.1:11434/v1 \\
    --model llama3.2
  doorward agent add command words -- wc -w`

/** The commands of `doorward config`. */
export const addConfigCommands = (config: Command): void => {
  config
    .command('check')
    .description('list all problems as file:line:column; exits with 1 if there are any')
    .action(run(async () => (await import('./config/config.ts')).checkConfiguration))
  config
    .command('path')
    .description('print the folder of the configuration')
    .action(run(async () => printConfigPath))
  config
    .command('edit')
    .description('open a file in $VISUAL or $EDITOR, then check it')
    .argument('[name]', 'webhooks, agents, gateway or env (default: webhooks)')
    .action(run(async () => (await import('./config/config.ts')).editConfiguration))
  config
    .command('schema')
    .description('print the JSON Schema of a configuration file')
    .argument('<name>', 'webhooks, agents or gateway')
    .action(run(async () => (await import('./config/config.ts')).printSchema))
}

/** Prints the folder of the configuration files. */
const printConfigPath = ({ home, terminal }: Context): void => {
  if (terminal.json) terminal.printJson({ path: home.config })
  else terminal.print(home.config)
}

/** The commands of `doorward daemon`. */
export const addDaemonCommands = (daemon: Command): void => {
  daemon
    .command('start')
    .description('start the daemon; returns when it answers')
    .option('--foreground', 'run in this process; exits with 78 on an invalid configuration')
    .action(run(async () => (await import('./daemon/start.ts')).startDaemon))
  daemon
    .command('stop')
    .description('finish what was accepted, then stop the daemon')
    .action(run(async () => (await import('./daemon/stop.ts')).stopDaemon))
  daemon
    .command('restart')
    .description('restart the daemon, for example after an upgrade, without refusing a webhook')
    .action(run(async () => (await import('./daemon/restart.ts')).restartDaemon))
  daemon
    .command('reload')
    .description('reload the configuration now; the daemon also does so when a file changes')
    .action(run(async () => (await import('./daemon/reload.ts')).reloadDaemon))
  daemon
    .command('status')
    .description('report whether the daemon runs; exits with 3 when it does not')
    .action(run(async () => (await import('./status.ts')).showDaemonStatus))
  daemon
    .command('logs')
    .description('the last 50 lines of the log; with --json as they are')
    .option('-f, --follow', 'print new lines until interrupted')
    .action(run(async () => (await import('./daemon/logs.ts')).showLogs))
  daemon
    .command('install')
    .description('start the daemon at login (for this user only), and now')
    .option('--tray', 'the tray as well')
    .addHelpText('after', installHelp)
    .action(run(async () => (await import('./daemon/install.ts')).installDaemon))
  daemon
    .command('uninstall')
    .description('do not start at login; stops a daemon that systemd or launchd runs')
    .option('--tray', 'the tray as well')
    .action(run(async () => (await import('./daemon/install.ts')).uninstallDaemon))
}

const installHelp = `
Linux: a systemd user unit, or without systemd an entry of the desktop;
macOS: a launch agent; Windows: a script in the Startup folder. systemd and
launchd start it again when it fails; when that is of no use, they tell you.

The agents get the PATH of the shell that you run this in. Secrets come from
.env of the home folder. Run it again after an upgrade of Node or doorward.`

/** The commands of `doorward events`. */
export const addEventsCommands = (events: Command): void => {
  events
    .command('show')
    .description('one event with its prompt and answer')
    .argument('<id>')
    .option('--prompt', 'only the whole prompt of its agent, with contexts, while it is in memory')
    .action(run(async () => (await import('./events/show.ts')).showEvent))
  events
    .command('open')
    .description('open the page of an event in a browser')
    .argument('<id>')
    .option('--no-browser', 'print a link that works once, for five minutes')
    .action(run(async () => (await import('./events/control.ts')).openEvent))

  events
    .command('retry')
    .description(
      'run a failed event again: the agent, or only the deliveries that failed. Prompt and targets are those of the event; agent, tokens and addresses are as configured now',
    )
    .argument('<id>')
    .option(
      '--again',
      'run it once more, even if it is done, with prompt, agent and targets as they are now',
    )
    .option('--wait', "wait until it is finished and print the agent's answer")
    .action(run(async () => (await import('./events/control.ts')).retryEvent))
  events
    .command('missed')
    .description(
      'deliveries that did not arrive while this machine was off, from the list of the sender; for hooks of webhook connect',
    )
    .option('--run', 'run them, the oldest first; at most source.at_most of a webhook')
    .option('--skip', 'forget them')
    .option('--webhook <path>', 'only those of this webhook')
    .action(run(async () => (await import('./events/missed.ts')).showMissed))
  events
    .command('cancel')
    .description(
      'cancel an event that waits or runs: its agent is stopped with everything it started, by SIGTERM and 5 s later by SIGKILL. It can be run again with retry',
    )
    .argument('<id>')
    .action(run(async () => (await import('./events/control.ts')).cancelEvent))
  events
    .command('forget')
    .description(
      'remove the prompt, the answer and the payload of a finished event from memory and the history, with its conversation',
    )
    .argument('[id]')
    .option('--all', 'instead, remove the whole history of the disk')
    .option('-y, --yes', 'with --all: do not ask')
    .action(
      run<{ readonly yes?: boolean }>(async () => {
        const { forgetEvent } = await import('./events/control.ts')
        // The list of events has an option of this name too, and the parser gives it to the list.
        const { all } = events.opts<{ readonly all?: boolean }>()
        return async (context, args, options) => forgetEvent(context, args, { ...options, all })
      }),
    )
  addApprovalCommands(events)
}

const addApprovalCommands = (events: Command): void => {
  events
    .command('approve')
    .description('send the answer of an event that waits for an approval')
    .argument('<id>')
    .option('--without <numbers>', 'leave these comments out, as 1,3; repeatable', listed)
    .option('--wait', 'wait until it is finished and print the answer')
    .action(run(async () => (await import('./events/approve.ts')).approveEvent))
  events
    .command('reject')
    .description('do not send the answer of an event that waits for an approval')
    .argument('<id>')
    .action(run(async () => (await import('./events/approve.ts')).rejectEvent))
  events
    .command('again')
    .description('run the agent of an event that waits for an approval once more, with your words')
    .argument('<id>')
    .option('--remark <text>', 'what the agent should do otherwise; at most 4000 characters')
    .option('--wait', 'wait until it has ended')
    .action(run(async () => (await import('./events/approve.ts')).againEvent))
  events
    .command('deliver')
    .description('send the answer of a dry run after all')
    .argument('<id>')
    .option('--wait', 'wait until it is finished and print the answer')
    .action(run(async () => (await import('./events/approve.ts')).deliverEvent))
}

/** The commands of `doorward session`. */
export const addSessionCommands = (session: Command): void => {
  const command = (name: string, description: string) =>
    session
      .command(name)
      .description(description)
      .usage('[options] [rule] <key>')
      .argument('<key...>', 'what the events have in common, such as acme/shop#12')
  session
    .command('list')
    .description('list the conversations, the last used first')
    .action(run(async () => (await import('./session/session.ts')).listSessions))
  command('show', 'show one conversation: its agent, size and end').action(
    run(async () => (await import('./session/session.ts')).showSession),
  )
  command('forget', 'remove a conversation; the next event starts a new one').action(
    run(async () => (await import('./session/session.ts')).forgetSession),
  )
  command(
    'open',
    'go on with it at the terminal, in the program itself and in a checkout of the same commit',
  ).action(run(async () => (await import('./session/open.ts')).openSession))
  command('close', 'take it back as it is now, and remove it from the program and the disk').action(
    run(async () => (await import('./session/open.ts')).closeSession),
  )
}

/** The commands of `doorward workspace`. */
export const addWorkspaceCommands = (workspace: Command): void => {
  workspace
    .command('list')
    .description('list the mirrors of repositories: size, last use, and how many runs use them now')
    .action(run(async () => (await import('./workspace/mirrors.ts')).listWorkspaces))
  workspace
    .command('clear')
    .description('remove the mirrors that no run uses; the next run fetches them again')
    .option('-y, --yes', 'do not ask')
    .action(run(async () => (await import('./workspace/mirrors.ts')).clearWorkspaces))
}
