import type { EventDetail } from '../shared/api.ts'

/** What helps with an event that ended badly, as a hint; undefined when nothing has to be done. */
export const nextStep = ({ id, kind, state, code, prompt }: EventDetail): string | undefined => {
  if (kind !== 'webhook') return undefined
  if (state === 'rejected')
    return code === 'signature-invalid'
      ? 'mend what the reason names, then deliver it again from the sender'
      : 'nothing was run; deliver it again from the sender'
  if (state !== 'failed' && state !== 'dropped') return undefined
  if (prompt === undefined)
    return 'its prompt is no longer in memory: deliver it again from the sender'
  const retry = `doorward events retry ${id}`
  return code === 'needs-login' || code === 'not-logged-in'
    ? `log in (doorward oauth list shows where), then: ${retry}`
    : retry
}
