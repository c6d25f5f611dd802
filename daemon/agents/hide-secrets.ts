/** What each secret is called where it may not be shown: `token of github`. */
export type Secrets = ReadonlyMap<string, string>

/** Fewer characters of a secret tell nothing, and may well be part of another word. */
const leastPart = 4

/**
 * The text with `<token of github>` in place of each secret. One that is cut, as the text begins or ends
 * in it, is hidden as far as it is there: what a program says is cut wherever it is too long, and who
 * writes a payload can choose the place.
 */
export const hideSecrets = (text: string, secrets: Secrets): string => {
  // One can be part of another.
  const longestFirst = [...secrets].sort(([one], [other]) => other.length - one.length)
  return longestFirst.reduce(
    (clean, [secret, name]) => clean.replaceAll(secret, `<${name}>`),
    withoutCutEnd(withoutCutStart(text.replace(/^\ufffd+/, ''), secrets), secrets),
  )
}

const withoutCutStart = (text: string, secrets: Secrets): string => {
  const part = longestPart(secrets, (secret, length) => text.startsWith(secret.slice(-length)))
  return part ? `<${part.name}>${text.slice(part.length)}` : text
}

const withoutCutEnd = (text: string, secrets: Secrets): string => {
  const part = longestPart(secrets, (secret, length) => text.endsWith(secret.slice(0, length)))
  return part ? `${text.slice(0, -part.length)}<${part.name}>` : text
}

/** Of all secrets the longest part, not the whole, of which this is so. */
const longestPart = (
  secrets: Secrets,
  isThere: (secret: string, length: number) => boolean,
): { readonly name: string; readonly length: number } | undefined => {
  let longest: { name: string; length: number } | undefined
  for (const [secret, name] of secrets)
    for (let length = secret.length - 1; length >= leastPart; length -= 1)
      if (length > (longest?.length ?? 0) && isThere(secret, length)) longest = { name, length }
  return longest
}
