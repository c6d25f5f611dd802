import type { Command } from 'commander'
import { run } from '../../run-action.ts'

/** The commands of `doorward schedule`. */
export const addScheduleCommands = (schedule: Command): void => {
  schedule
    .command('list')
    .description('list the schedules with their next three runs')
    .action(run(async () => (await import('./control.ts')).listSchedules))
  schedule
    .command('add')
    .description('add a schedule to schedules.yaml')
    .argument('<name>', 'its name; weekly-digest is a whole one that tells of a repository')
    .option('--cron <fields>', 'when: "0 9 * * 1-5"')
    .option('--every <duration>', 'or how often: 2h')
    .option('--at <time>', 'or once: 2026-12-01T09:00')
    .option('--timezone <zone>', 'as Europe/Berlin (default: that of the machine)')
    .option('--agent <name>', 'an agent of agents.yaml, or an agent program to add')
    .option('--prompt <text>', 'the prompt')
    .option('--repo <dir>', 'weekly-digest: the folder of a git repository')
    .option('--deliver-to <target>', 'where the answer goes (default: notify:desktop)')
    .option('--print', 'print the entry, write nothing')
    .addHelpText('after', addHelp)
    .action(run(async () => (await import('./add.ts')).addSchedule))
  schedule
    .command('run')
    .description('run one now, also while it is paused or its last run is not over')
    .argument('<name>')
    .action(run(async () => (await import('./control.ts')).runSchedule))
  schedule
    .command('pause')
    .description('let one rest until resume, also over a restart')
    .argument('<name>')
    .action(run(async () => (await import('./control.ts')).pauseSchedule))
  schedule
    .command('resume')
    .description('let one go on; what it did not run while it was paused is not made up')
    .argument('<name>')
    .action(run(async () => (await import('./control.ts')).resumeSchedule))
}

const addHelp = `
Examples:
  doorward schedule add morning --cron '0 9 * * 1-5' --agent claude \\
    --prompt 'Which holiday is it today, and where?'
  doorward schedule add weekly-digest --repo ~/shop --agent claude`
