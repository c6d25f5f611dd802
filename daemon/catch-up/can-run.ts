import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import type { PastDelivery } from '../sources/source.ts'
import { holds } from '../webhook/rules/filter.ts'
import { isNamed } from '../webhook/rules/choose.ts'

/**
 * False for a delivery that no rule runs, as far as the list of the sender tells: by its event, and by what a
 * filter asks of `event.action` alone. Its details need not be read.
 */
export const canRun = (
  { rules }: Pick<CompiledWebhook, 'rules'>,
  { event, action }: Pick<PastDelivery, 'event' | 'action'>,
): boolean => {
  if (event === 'ping') return false
  const scope = { event: { action }, headers: {} }
  return rules.some(
    ({ on, filter }) =>
      (!on || isNamed(on, { event, action })) &&
      filter.every(
        (condition) =>
          condition.kind !== 'value' ||
          condition.path.length !== 2 ||
          condition.path[0] !== 'event' ||
          condition.path[1] !== 'action' ||
          holds(scope, condition),
      ),
  )
}
