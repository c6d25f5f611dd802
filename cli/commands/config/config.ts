import type { Command } from 'commander'
import { toJsonSchema } from '../../../shared/config/schema.ts'
import type { Context } from '../../context.ts'
import { run } from '../../run-action.ts'
import { parseConfigName } from './edit.ts'

/** The commands of `doorward config`. */
export const addConfigCommands = (config: Command): void => {
  config
    .command('check')
    .description('every problem at once as file:line:column; ends with 1 when there is one')
    .action(run(async () => (await import('./check.ts')).checkConfiguration))
  config
    .command('path')
    .description('print the folder of the configuration')
    .action(run(async () => printConfigPath))
  config
    .command('edit')
    .description('open a file in $VISUAL or $EDITOR, and check it afterwards')
    .argument('[name]', 'webhooks, agents, gateway or env (default: webhooks)')
    .action(run(async () => (await import('./edit.ts')).editConfiguration))
  config
    .command('schema')
    .description('print the JSON Schema of a configuration file')
    .argument('<name>', 'webhooks, agents or gateway')
    .action(run(async () => printSchema))
}

/** Prints the folder of the configuration files. */
const printConfigPath = ({ home, terminal }: Context): void => {
  if (terminal.json) terminal.printJson({ path: home.config })
  else terminal.print(home.config)
}

/** Prints the JSON Schema of a configuration file, exactly as `config/schema/` of the package holds it. */
const printSchema = ({ terminal }: Context, [name = '']: string[]): void =>
  terminal.printJson(toJsonSchema(parseConfigName(name)))
