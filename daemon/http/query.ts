import type { RouterContext } from '@koa/router'
import { DoorwardError } from '../../shared/errors.ts'

/* What routes of the local API read of a request besides its body, and how they answer. */

/** Answers with a document that is stored nowhere. */
export const answer = (ctx: RouterContext, status: number, document: object): void => {
  ctx.set('cache-control', 'no-store')
  ctx.status = status
  ctx.body = document
}

/** A query parameter of whole seconds, in milliseconds; undefined where it is not given. */
export const readSeconds = (ctx: RouterContext, name: string): number | undefined => {
  const text = ctx.query[name]
  if (text === undefined) return undefined
  if (typeof text === 'string' && /^\d{1,8}$/.test(text)) return Number(text) * 1000
  throw new DoorwardError('request-invalid', `${name}: a whole number of seconds`)
}

/** A query parameter; undefined where it is not given. */
export const readText = (ctx: RouterContext, name: string): string | undefined => {
  const text = ctx.query[name]
  if (text === undefined || typeof text === 'string') return text
  throw new DoorwardError('request-invalid', `${name}: once`)
}

/** Aborted when the client closes its connection. */
export const abortOnClose = (ctx: RouterContext): AbortSignal => {
  const control = new AbortController()
  ctx.res.once('close', () => control.abort())
  return control.signal
}
