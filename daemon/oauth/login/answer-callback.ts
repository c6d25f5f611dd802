import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { CallbackAnswer, CallbackListener } from './callback-listener.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { RenderedPage } from '../../http/page.ts'
import type { Page } from './callback-page.ts'

const exchangeLimitMs = 90_000
const showLimitMs = 10_000

type Parts = {
  readonly listener: () => CallbackListener
  readonly render: (page: Page) => RenderedPage
  /**
   * Finishes the login that waits for these parameters at this host, and says what to show. Throws
   * when they are not the answer of any: then nothing has changed.
   */
  readonly finish: (parameters: URLSearchParams, host: string) => Promise<Page>
}

/**
 * Answers the requests that reach the callback port. Only a navigation of a browser to exactly the
 * redirect URI is looked at. The result is shown at an address of its own, reached by a redirect, so
 * that no code stays in the address bar or the history.
 */
export const createAnswerCallback = ({ listener, render, finish }: Parts) => {
  const results = new Map<string, { readonly answer: CallbackAnswer }>()

  const finishAndRedirect = async (parameters: URLSearchParams, host: string) => {
    const letGo = listener().hold(exchangeLimitMs)
    try {
      const page = await finish(parameters, host)
      const address = `/done/${randomBytes(16).toString('base64url')}`
      const letGoOfPage = listener().hold(showLimitMs)
      const onSent = (): void => {
        results.delete(address)
        letGoOfPage()
      }
      const status = page.kind === 'done' ? 200 : 400
      results.set(address, { answer: { status, page: render(page), onSent } })
      // The page itself holds no secret, so one that is never fetched may stay until it is replaced.
      if (results.size > 20) results.delete([...results.keys()][0] ?? '')
      return { status: 303, page: undefined, headers: { location: address } }
    } finally {
      letGo()
    }
  }

  return async (request: IncomingMessage): Promise<CallbackAnswer> => {
    try {
      const host = checkHost(request)
      const [path, query = ''] = splitOnce(request.url ?? '', '?')
      const result = results.get(path)
      if (path !== '/callback' && !result) return { status: 404, page: undefined }
      if (request.method !== 'GET') return { status: 400, page: undefined }
      checkNavigation(request)
      return result?.answer ?? (await finishAndRedirect(new URLSearchParams(query), host))
    } catch (error) {
      return { status: 400, page: render(ignoredPage(error)) }
    }
  }
}

const checkHost = (request: IncomingMessage): string => {
  const [host, ...more] = request.headersDistinct['host'] ?? []
  const names = ['127.0.0.1', 'localhost']
  const ours = names.map((name) => new URL(`http://${name}:${request.socket.localPort}`).host)
  if (host !== undefined && more.length === 0 && ours.includes(host)) return host
  throw new DoorwardError('host-forbidden', 'this address is not served here')
}

/** A browser says what it fetches for: an image, a frame or a guess ahead is never a login. */
const checkNavigation = ({ headers }: IncomingMessage): void => {
  const destination = headers['sec-fetch-dest']
  const isPrefetch = [headers['sec-purpose'], headers['purpose']].some((purpose) =>
    String(purpose ?? '').includes('prefetch'),
  )
  if ((destination === undefined || destination === 'document') && !isPrefetch) return
  throw new DoorwardError('callback-invalid', 'only a page that you open yourself can be a login')
}

const ignoredPage = (error: unknown): Page => ({
  kind: 'ignored',
  title: 'Not a login we are waiting for',
  message:
    error instanceof DoorwardError
      ? `Nothing has changed: ${error.message}.`
      : 'Nothing has changed: something went wrong inside the daemon.',
  advice: 'If you were logging in, go back to the window where you approved it, or start again.',
})

const splitOnce = (text: string, separator: string): [string, string?] => {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
