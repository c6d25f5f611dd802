import type { Command } from 'commander'
import { run } from '../run-action.ts'

/** The commands of `doorward config`. */
export const addConfigCommands = (config: Command): void => {
  config
    .command('check')
    .description('every problem at once as file:line:column; ends with 1 when there is one')
    .action(run(async () => (await import('../config-check.ts')).checkConfiguration))
  config
    .command('path')
    .description('print the folder of the configuration')
    .action(run(async () => (await import('../config-path.ts')).printConfigPath))
  config
    .command('edit')
    .description('open a file in $VISUAL or $EDITOR, and check it afterwards')
    .argument('[name]', 'webhooks, agents, gateway or env (default: webhooks)')
    .action(run(async () => (await import('../config-edit.ts')).editConfiguration))
  config
    .command('schema')
    .description('print the JSON Schema of a configuration file')
    .argument('<name>', 'webhooks, agents or gateway')
    .action(run(async () => (await import('../config-schema.ts')).printSchema))
}
