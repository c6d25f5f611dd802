import { jsonSchemaOf } from '../shared/config/schema.ts'
import { configNameOf } from './config-name.ts'
import type { Context } from './context.ts'

/** Prints the JSON Schema of a configuration file, exactly as `config/schema/` of the package holds it. */
export const printSchema = ({ terminal }: Context, [name = '']: string[]): void =>
  terminal.printJson(jsonSchemaOf(configNameOf(name)))
