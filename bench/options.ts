import { parseArgs } from 'node:util'

export const groupNames = [
  'load',
  'pace',
  'token',
  'start',
  'process',
  'workspace',
  'waits',
  'machines',
  'sessions',
  'growth',
] as const
export type GroupName = (typeof groupNames)[number]

/** Half of the time is that of these. */
const longGroups: readonly GroupName[] = ['pace', 'workspace', 'sessions', 'growth']

export type Options = {
  /** Under a minute, for CI: one round of the rows that matter most. */
  readonly isShort: boolean
  readonly rounds: number
  /** How long one load lasts. */
  readonly seconds: number
  readonly groups: readonly GroupName[]
  /** Folder for a CPU profile of the daemon that takes the loads. */
  readonly profile: string | undefined
}

/** Reads the arguments of `npm run bench -- …`. Throws on one that is not known. */
export const readOptions = (args: string[]): Options => {
  const { values } = parseArgs({
    args,
    options: {
      short: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string', multiple: true },
      profile: { type: 'string' },
    },
  })
  const isShort = values.short
  const only = values.only ?? groupNames.filter((name) => !isShort || !longGroups.includes(name))
  const groups = groupNames.filter((name) => only.includes(name))
  const unknown = only.filter((name) => !(groupNames as readonly string[]).includes(name))
  if (unknown.length > 0)
    throw new Error(`no such group: ${unknown.join(', ')}; there are ${groupNames.join(', ')}`)
  return {
    isShort,
    rounds: Number(values.rounds ?? (isShort ? 1 : 5)),
    seconds: Number(values.seconds ?? (isShort ? 1 : 3)),
    groups,
    profile: values.profile,
  }
}
