import type { Command } from 'commander'
import { run } from '../../run-action.ts'

/** The commands of `doorward daemon`. */
export const addDaemonCommands = (daemon: Command): void => {
  daemon
    .command('start')
    .description('start the daemon; returns when it answers')
    .option('--foreground', 'run in this process; exits with 78 on an invalid configuration')
    .action(run(async () => (await import('./start.ts')).startDaemon))
  daemon
    .command('stop')
    .description('finish what was accepted, then stop the daemon')
    .action(run(async () => (await import('./stop.ts')).stopDaemon))
  daemon
    .command('restart')
    .description('restart the daemon, for example after an upgrade, without refusing a webhook')
    .action(run(async () => (await import('./restart.ts')).restartDaemon))
  daemon
    .command('reload')
    .description('reload the configuration now; the daemon also does so when a file changes')
    .action(run(async () => (await import('./reload.ts')).reloadDaemon))
  daemon
    .command('status')
    .description('report whether the daemon runs; exits with 3 when it does not')
    .action(run(async () => (await import('./status.ts')).showDaemonStatus))
  daemon
    .command('logs')
    .description('the last 50 lines of the log; with --json as they are')
    .option('-f, --follow', 'print new lines until interrupted')
    .action(run(async () => (await import('./logs.ts')).showLogs))
  daemon
    .command('install')
    .description('start the daemon at login (for this user only), and now')
    .option('--tray', 'the tray as well')
    .addHelpText('after', installHelp)
    .action(run(async () => (await import('./install.ts')).installDaemon))
  daemon
    .command('uninstall')
    .description('do not start at login; stops a daemon that systemd or launchd runs')
    .option('--tray', 'the tray as well')
    .action(run(async () => (await import('./install.ts')).uninstallDaemon))
}

const installHelp = `
Linux: a systemd user unit, or without systemd an entry of the desktop;
macOS: a launch agent; Windows: a script in the Startup folder. systemd and
launchd start it again when it fails; when that is of no use, they tell you.

The agents get the PATH of the shell that you run this in. Secrets come from
.env of the home folder. Run it again after an upgrade of Node or doorward.`
