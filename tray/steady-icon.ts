import type { IconName } from './icon-of.ts'

const holdMs = 1000

/** Which icon to show, and when to look again. */
export type SteadyIcon = {
  readonly name: IconName
  readonly since: number
  readonly lookAgainAt?: number
}

/** Holds `running` for at least a second before it becomes `idle`, so that the icon does not flicker. */
export const steadyIcon = (
  shown: SteadyIcon | undefined,
  name: IconName,
  now: number,
): SteadyIcon => {
  if (!shown) return { name, since: now }
  const { since } = shown
  if (shown.name === 'running' && name === 'idle' && now - since < holdMs)
    return { name: 'running', since, lookAgainAt: since + holdMs }
  return { name, since: shown.name === name ? since : now }
}
