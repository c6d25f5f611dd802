import type { EventScope } from '../../daemon/webhook/read-delivery.ts'

/** A delivery with this payload, as templates read it. */
export const scopeOf = (event: unknown, more: Partial<EventScope> = {}): EventScope => ({
  event,
  headers: {},
  webhook: { path: '/webhook/test' },
  delivery: { id: 'delivery-1', received_at: '2026-11-26T17:00:00.000Z' },
  ...more,
})
