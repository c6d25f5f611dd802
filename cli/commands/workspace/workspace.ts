import type { Command } from 'commander'
import { run } from '../../run-action.ts'

/** The commands of `doorward workspace`. */
export const addWorkspaceCommands = (workspace: Command): void => {
  workspace
    .command('list')
    .description('list the mirrors of repositories: size, last use, and how many runs use them now')
    .action(run(async () => (await import('./mirrors.ts')).listWorkspaces))
  workspace
    .command('clear')
    .description('remove the mirrors that no run uses; the next run fetches them again')
    .option('-y, --yes', 'do not ask')
    .action(run(async () => (await import('./mirrors.ts')).clearWorkspaces))
}
