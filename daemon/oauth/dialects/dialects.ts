import type { DialectName } from '../../../shared/config/schema.ts'
import type { Dialect } from './dialect.ts'
import { github } from './github.ts'
import { google } from './google.ts'
import { slack } from './slack.ts'
import { standard } from './standard.ts'

const dialects: Readonly<Record<DialectName, Dialect>> = { standard, google, github, slack }

/** The dialect of this name. */
export const getDialect = ({ dialect }: { readonly dialect: DialectName }): Dialect =>
  dialects[dialect]
