import type { IncomingMessage } from 'node:http'

/**
 * Every value of a header apart, by its name in lower case. Only this one is looked for: `headersDistinct` makes
 * an object of them all, and `headers` is one of another shape for each order that they are written in.
 */
export const headerValues = ({ rawHeaders }: IncomingMessage, name: string): string[] => {
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const value = rawHeaders[index + 1]
    const given = rawHeaders[index]
    if (given?.length === name.length && given.toLowerCase() === name && value !== undefined)
      values.push(value)
  }
  return values
}
