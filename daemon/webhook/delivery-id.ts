import type { SignatureHeaders } from './verify.ts'

/** Headers in which senders name a delivery: GitHub, Standard Webhooks, Svix, GitLab, Shopify, Linear, Sentry. */
const idHeaders = [
  'x-github-delivery',
  'webhook-id',
  'svix-id',
  'x-gitlab-event-uuid',
  'x-shopify-webhook-id',
  'linear-delivery',
  'request-id',
]

/**
 * The sender's own name for this delivery, when it gives a plain one of at most 128 characters: in the
 * header of the definition, else in that of a known sender.
 */
export const deliveryIdOf = (headers: SignatureHeaders, header?: string): string | undefined => {
  for (const name of header === undefined ? idHeaders : [header]) {
    const [value, second] = headers[name] ?? []
    if (value !== undefined && second === undefined && /^[\x21-\x7e]{1,128}$/.test(value))
      return value
  }
  return undefined
}
