/**
 * Plays the person at the page of a device login: opens it, types the code, confirms it, and follows
 * whatever comes. Returns the text of the last page.
 */
export const enterCode = async (page: string, userCode: string): Promise<string> => {
  const jar = new Map<string, string>()
  const browse = async (url: string, form?: URLSearchParams): Promise<string> => {
    let response = await ask(url, form, jar)
    for (let hops = 0; response.status >= 300 && response.status < 400; hops += 1) {
      if (hops > 20) throw new Error('too many redirects')
      const next = new URL(response.headers.get('location') ?? '', response.url).href
      response = await ask(next, undefined, jar)
    }
    return response.text()
  }
  const typed = fieldsOf(await browse(page))
  typed.set('user_code', userCode)
  const confirm = await browse(page, typed)
  const fields = fieldsOf(confirm)
  return fields.has('confirm') ? browse(page, fields) : confirm
}

const ask = async (
  url: string,
  form: URLSearchParams | undefined,
  jar: Map<string, string>,
): Promise<Response> => {
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const response = await fetch(url, {
    redirect: 'manual',
    headers: { cookie },
    ...(form && { method: 'POST', body: form }),
  })
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (name && value !== undefined) jar.set(name, value)
  }
  return response
}

/** What the form of a page would send without being touched. */
const fieldsOf = (html: string): URLSearchParams => {
  const fields = new URLSearchParams()
  for (const [input] of html.matchAll(/<input\b[^>]*>/g)) {
    const name = /\bname="([^"]*)"/.exec(input)?.[1]
    if (name) fields.set(name, /\bvalue="([^"]*)"/.exec(input)?.[1] ?? '')
  }
  return fields
}
