import { createHash } from 'node:crypto'
import { Router } from '@koa/router'
import type { Context } from 'koa'
import type { z } from 'zod'
import { DoorwardError } from '../../shared/errors.ts'
import { readAsset, readStyle } from '../util/assets.ts'

const usualMaxBytes = 64 * 1024

/**
 * Reads the JSON body of a request to the local API and checks it against a strict schema. Throws
 * `media-type-unsupported` (anything but plain application/json), `body-too-large` (64 KiB by default),
 * `body-aborted` or `request-invalid`, which names the key and never repeats a value.
 */
export const readJsonBody = async <Schema extends z.ZodType>(
  ctx: Context,
  schema: Schema,
  maxBytes = usualMaxBytes,
): Promise<z.output<Schema>> => {
  checkMediaType(ctx)
  const result = schema.safeParse(parseJson(await readBytes(ctx, maxBytes)))
  if (result.success) return result.data
  const issue = result.error.issues[0]
  const key = issue?.path.map(String).join('.') ?? ''
  const reason = issue ? lowerFirst(issue.message) : 'not what is expected'
  throw new DoorwardError('request-invalid', `${key === '' ? 'the body' : key}: ${reason}`)
}

const checkMediaType = (ctx: Context): void => {
  const encoding = ctx.get('content-encoding').toLowerCase()
  if (encoding !== '' && encoding !== 'identity')
    throw new DoorwardError('media-type-unsupported', 'the body must not be compressed')
  const type = ctx.get('content-type').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json')
    throw new DoorwardError('media-type-unsupported', 'the body must be application/json')
}

/** The body of a request, after which it can still be answered. Throws `body-too-large`, `body-aborted`. */
export const readBytes = async (ctx: Context, maxBodyBytes: number): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  try {
    // The default iterator would destroy the socket, and with it the response, at the end of the loop.
    for await (const chunk of ctx.req.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length
      if (size > maxBodyBytes) break
      chunks.push(chunk as Buffer)
    }
  } catch (error) {
    throw new DoorwardError('body-aborted', 'the body ended before it was complete', {
      cause: error,
    })
  }
  if (size <= maxBodyBytes) return Buffer.concat(chunks)
  ctx.set('connection', 'close')
  ctx.req.resume()
  throw new DoorwardError('body-too-large', `the body is larger than ${maxBodyBytes} bytes`)
}

const parseJson = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new DoorwardError('request-invalid', 'the body is not JSON')
  }
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** A router that matches paths exactly, with case and trailing slash, like those of webhooks. */
export const exactRouter = (): Router => new Router({ sensitive: true, strict: true })

export type RenderedPage = { readonly html: string; readonly contentSecurityPolicy: string }

/**
 * Returns a function that fills the page of `assets/<name>` with values that are HTML already. No script may
 * run, only its own style applies, and no form is sent.
 */
export const loadPage = (
  name: 'callback' | 'bot',
): ((values: Readonly<Record<string, string>>) => RenderedPage) => {
  const template = readAsset(`${name}/page.html`)
  const style = readStyle(name)
  const styleHash = createHash('sha256').update(style).digest('base64')
  const contentSecurityPolicy = [
    `default-src 'none'`,
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    `base-uri 'none'`,
    `form-action 'none'`,
    `frame-ancestors 'none'`,
  ].join('; ')
  const styled = template.replace('{{style}}', () => `<style>${style}</style>`)
  return (values) => ({
    html: styled.replaceAll(/\{\{(\w+)\}\}/g, (_, value: string) => values[value] ?? ''),
    contentSecurityPolicy,
  })
}

/** Makes text safe inside HTML and its quoted attributes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`)
