import type { DoorwardError } from '../../shared/errors.ts'
import type { SentKind } from '../../shared/config/targets.ts'

/** A target with the payload's values in place, or the reason why it cannot be used. */
export type ReadyTarget = { readonly text: string } & (
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: SentKind; readonly address: string }
  | { readonly kind: 'invalid'; readonly error: DoorwardError }
)
