import { request as httpRequest } from 'node:http'

export type Visit = {
  readonly url: string
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly text: string
}

export type VisitOptions = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
}

/** One request as a browser window would make it, nothing followed. */
export const visit = (url: string, { method = 'GET', headers = {} }: VisitOptions = {}) =>
  new Promise<Visit>((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          url,
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      )
    })
    request.on('error', reject)
    request.end()
  })

/** The cookies of one browser; whoever keeps it is still logged in at the provider. */
export type CookieJar = Map<string, string>

/**
 * Follows redirects with a cookie jar as a browser would, until a page comes or `stopBefore` says that
 * the next address is far enough. Returns that address, or the last page. Without a jar it is a browser
 * that nobody has used.
 */
export const browse = async (
  start: string,
  stopBefore: (url: string) => boolean = () => false,
  jar: CookieJar = new Map(),
): Promise<Visit> => {
  let url = start
  for (let hops = 0; hops < 20; hops += 1) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const page = await visit(url, { headers: { cookie, 'sec-fetch-dest': 'document' } })
    for (const line of [page.headers['set-cookie'] ?? []].flat()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (name && value !== undefined) jar.set(name, value)
    }
    const { location } = page.headers
    if (typeof location !== 'string') return page
    url = new URL(location, url).href
    if (stopBefore(url)) return { ...page, url }
  }
  throw new Error('too many redirects')
}

/** Approves in the browser and returns the address the provider sends it to, not yet visited. */
export const approve = async (authorizationUrl: string): Promise<string> => {
  const { url } = await browse(authorizationUrl, isCallback)
  if (!isCallback(url)) throw new Error('the provider did not send the browser back')
  return url
}

const isCallback = (url: string): boolean => new URL(url).pathname.endsWith('/callback')

/** The text of a page, without its tags. */
export const textOf = (html: string): string => html.replaceAll(/<[^>]+>/g, '')
