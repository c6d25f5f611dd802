import type { Command } from 'commander'
import { run } from '../../run-action.ts'

/** The commands of `doorward events`. */
export const addEventsCommands = (events: Command): void => {
  events
    .command('show')
    .description('one event with its prompt and answer')
    .argument('<id>')
    .action(run(async () => (await import('./show.ts')).showEvent))
  events
    .command('open')
    .description('open the page of an event in a browser')
    .argument('<id>')
    .option('--no-browser', 'print a link that works once, for one minute')
    .action(run(async () => (await import('./open.ts')).openEvent))

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
    .action(run(async () => (await import('./retry.ts')).retryEvent))
  events
    .command('missed')
    .description(
      'deliveries that did not arrive while this machine was off, from the list of the sender; for hooks of webhook connect',
    )
    .option('--run', 'run them, the oldest first; at most source.at_most of a webhook')
    .option('--skip', 'forget them')
    .option('--webhook <path>', 'only those of this webhook')
    .action(run(async () => (await import('./missed.ts')).showMissed))
  events
    .command('cancel')
    .description(
      'cancel an event that waits or runs: its agent is stopped with everything it started, by SIGTERM and 5 s later by SIGKILL. It can be run again with retry',
    )
    .argument('<id>')
    .action(run(async () => (await import('./cancel.ts')).cancelEvent))
}
