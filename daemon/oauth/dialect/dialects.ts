import type { DialectName } from '../../../shared/config.ts'
import type { Dialect } from './dialect.ts'
import { standard } from './standard.ts'

const dialects: Readonly<Record<DialectName, Dialect>> = {
  standard,
  google: standard,
  github: standard,
  slack: standard,
}

/** The dialect of this name. */
export const dialectOf = ({ dialect }: { readonly dialect: DialectName }): Dialect =>
  dialects[dialect]
