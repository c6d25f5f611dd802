import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { run } from '../../run-action.ts'

/** The commands of `doorward config`. */
export const addConfigCommands = (config: Command): void => {
  config
    .command('check')
    .description('list all problems as file:line:column; exits with 1 if there are any')
    .action(run(async () => (await import('./check.ts')).checkConfiguration))
  config
    .command('path')
    .description('print the folder of the configuration')
    .action(run(async () => printConfigPath))
  config
    .command('edit')
    .description('open a file in $VISUAL or $EDITOR, then check it')
    .argument('[name]', 'webhooks, agents, gateway or env (default: webhooks)')
    .action(run(async () => (await import('./edit.ts')).editConfiguration))
  config
    .command('schema')
    .description('print the JSON Schema of a configuration file')
    .argument('<name>', 'webhooks, agents or gateway')
    .action(run(async () => (await import('./schema.ts')).printSchema))
}

/** Prints the folder of the configuration files. */
const printConfigPath = ({ home, terminal }: Context): void => {
  if (terminal.json) terminal.printJson({ path: home.config })
  else terminal.print(home.config)
}
