import { DoorwardError } from '../shared/errors.ts'
import type { ConfigName } from '../shared/config/schema.ts'

const names: readonly ConfigName[] = ['webhooks', 'agents', 'gateway']

/** The configuration file that is meant, `.yaml` allowed. Throws `usage` for any other name. */
export const configNameOf = (text: string): ConfigName => {
  const name = names.find((known) => text === known || text === `${known}.yaml`)
  if (name) return name
  throw new DoorwardError('usage', `there is no configuration file "${text}"`, {
    hint: `one of ${names.join(', ')}`,
  })
}
