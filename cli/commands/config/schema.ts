import { type ConfigName, toJsonSchema } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Context } from '../../context.ts'

/** Prints the JSON Schema of a configuration file, as in `config/schema/` of the package. */
export const printSchema = ({ terminal }: Context, [name = '']: string[]): void =>
  terminal.printJson(toJsonSchema(parseConfigName(name)))

const names: readonly ConfigName[] = ['webhooks', 'agents', 'gateway']

/** The configuration file that is meant, `.yaml` allowed. Throws `usage` for any other name. */
export const parseConfigName = (text: string): ConfigName => {
  const name = names.find((known) => text === known || text === `${known}.yaml`)
  if (name) return name
  throw new DoorwardError('usage', `there is no configuration file "${text}"`, {
    hint: `one of ${names.join(', ')}`,
  })
}
