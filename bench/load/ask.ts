import { request } from 'node:http'

/** The text of a good response. Throws on any other: `fetch` sends headers by which browsers are told. */
export const ask = async (
  url: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<string> =>
  new Promise((resolve, reject) => {
    const asked = request(url, { method, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.once('end', () => {
        const { statusCode = 0 } = response
        if (statusCode >= 200 && statusCode < 300) resolve(text)
        else reject(new Error(`${method} ${url}: ${statusCode}`))
      })
    })
    asked.once('error', reject)
    asked.end()
  })
