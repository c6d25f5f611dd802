/**
 * A JSON object with a number under a key of its own, in place of what stands there or as its last
 * member. Every other byte stays: parsed and written anew, an integer over 2^53 would be another one.
 * What is no JSON object comes back as it is. `field` is in ASCII.
 */
export const stampBody = (body: Buffer, field: string, value: number): Buffer => {
  if (!isJsonObject(body.toString('utf8'))) return body
  // A character for each byte: what holds JSON together is ASCII, and no part of another character in UTF-8.
  const text = body.toString('latin1')
  const members = membersOf(text)
  // Of a key that stands there twice, the last one counts.
  const place = members.findLast(({ key }) => key === field)
  const end = members.at(-1)?.to ?? text.indexOf('{') + 1
  const { from, to } = place ?? { from: end, to: end }
  const comma = members.length > 0 ? ',' : ''
  const put = place ? `${value}` : `${comma}"${field}":${value}`
  return Buffer.from(`${text.slice(0, from)}${put}${text.slice(to)}`, 'latin1')
}

const isJsonObject = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** A key of the outermost object, and where its value begins and ends. */
type Member = { readonly key: unknown; readonly from: number; readonly to: number }

const membersOf = (text: string): Member[] => {
  const members: Member[] = []
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g
  let depth = 0
  let last = ''
  let key: unknown
  let from = 0
  let to = 0
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (depth === 1) {
      if (last === ':') from = index
      if (token === ':') key = JSON.parse(last)
      if (token === ',' || (token === '}' && last !== '{')) members.push({ key, from, to })
    }
    if (token === '{' || token === '[') depth += 1
    if (token === '}' || token === ']') depth -= 1
    last = token
    to = index + token.length
  }
  return members
}
