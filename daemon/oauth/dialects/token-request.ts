import { customFetch } from 'oauth4webapi'
import type { Endpoints } from '../providers/discovery.ts'
import { requestOptions } from '../providers/request.ts'

/** The options of a request to the token or revocation endpoint, with the headers and body of this provider. */
export const tokenRequestOptions = (
  endpoint: string,
  { quirks }: Pick<Endpoints, 'quirks'>,
  signal: AbortSignal,
) => {
  const options = requestOptions(endpoint, signal)
  const fetchAsJson = async (url: string, init: RequestInit): Promise<Response> =>
    options[customFetch](url, withJsonBody(init))
  return {
    ...options,
    ...(quirks?.headers && { headers: { ...quirks.headers } }),
    ...(quirks?.requestBody === 'json' && { [customFetch]: fetchAsJson }),
  }
}

/** The library sends forms only. */
const withJsonBody = (init: RequestInit): RequestInit => {
  if (!(init.body instanceof URLSearchParams)) return init
  const headers = new Headers(init.headers)
  headers.set('content-type', 'application/json')
  return { ...init, headers, body: JSON.stringify(Object.fromEntries(init.body)) }
}
