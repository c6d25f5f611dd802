/** Breaks a word, a mark or an address apart without being seen. */
export const zeroWidthSpace = '\u200b'

/** Whose links and images stay links. */
export type LinkHosts = {
  /** The origin of the repository's own server, as `https://github.com`. Links with a query are kept as text there too. */
  readonly server?: string | undefined
  /** Hosts that the owner allows, as `docs.example.com`, `*.example.com` or `localhost:8080`. */
  readonly allowed?: readonly string[] | undefined
}

/** The hosts of a target of this server for an answer of this rule. */
export const toLinkHosts = (
  server: string | undefined,
  {
    publish,
  }: { readonly publish?: { readonly allowedLinks?: readonly string[] | undefined } | undefined },
): LinkHosts => ({ server, allowed: publish?.allowedLinks })

/** Tags that only format, without attributes. */
const keptTag =
  /<\/?(?:b|blockquote|br|code|dd|del|dl|dt|em|h[1-6]|hr|i|ins|kbd|li|ol|p|s|strong|sub|summary|sup|table|tbody|td|th|thead|tr|ul|details(?: open)?)[ ]?\/?>/iy

/** A line that begins a block of HTML with one of them (CommonMark section 4.6). */
export const htmlStart =
  /^[\s>*+.)\d-]*<\/?(?:(?:blockquote|dd|details|dl|dt|h[1-6]|hr|li|ol|p|summary|table|tbody|td|th|thead|tr|ul)\b|(?:b|br|code|del|em|i|ins|kbd|s|strong|sub|sup) ?\/?>[ \t]*$)/i

/** Markdown without links, images and HTML, but for links of these hosts and tags that only format. */
export const breakLinks = (text: string, hosts: LinkHosts): string => {
  const own = compileHosts(hosts)
  return text.replaceAll(markers, (found: string, ...rest: unknown[]) => {
    const at = Number(rest[0])
    const end = at + found.length
    if (found.startsWith('<'))
      return matchesAt(keptTag, text, at) || matchesAt(own.bare, text, end) ? found : broken(found)
    if (found === '](') return isKeptDestination(text, end, own) ? found : broken(found, 1)
    if (found.startsWith('&')) return isForAddress(found) ? broken(found) : found
    if (found.endsWith('//')) return isOwnAt(text, at, own) ? found : broken(found, -2)
    const scheme = /https?:\/\/$/i.exec(text.slice(Math.max(0, at - 8), at))?.[0].length ?? 0
    return isOwnAt(text, at - scheme, own) ? found : broken(found, found.length - 1)
  })
}

/** The scheme may be a part of a longer word. */
const isOwnAt = (text: string, at: number, { bare, destination }: Own): boolean =>
  text.slice(Math.max(0, at - 2), at) === ']('
    ? matchesAt(destination, text, at)
    : !/[A-Za-z0-9+.-]/.test(text[at - 1] ?? '') && matchesAt(bare, text, at)

/** Adds a space that no one sees, by default at the end. */
const broken = (found: string, at = found.length): string =>
  `${found.slice(0, at)}${zeroWidthSpace}${found.slice(at)}`

// A tag, a destination, the colon of a definition or a footnote, an entity, an address, and what begins an address
// of mail.
const markers =
  /<(?=[A-Za-z/!?])|\]\(|\]:|&(?:#\d{1,9}|#x[\da-f]{1,8}|colon|sol|period|[a-z]{1,20});?|(?:https?)?:\/\/|www\.|(?:mailto|xmpp):/gi

/** A page of the same server, or one of its addresses; without a title, which may have anything. */
const relative = /(?!\/\/|www\.)(?:[\w./-]+|(?=#))(?:#[A-Za-z][\w-]*)?\)/iy

const isKeptDestination = (text: string, at: number, { destination }: Own): boolean =>
  matchesAt(relative, text, at) || matchesAt(destination, text, at)

const matchesAt = (pattern: RegExp, text: string, at: number): boolean => {
  pattern.lastIndex = at
  return pattern.test(text)
}

/** A letter, a digit, or a mark of an address, which some servers read as if it were written plainly. */
const isForAddress = (entity: string): boolean => {
  const [, hex, digits] = /^&#(?:x([\da-f]+)|(\d+))/i.exec(entity) ?? []
  if (hex === undefined && digits === undefined) return /^&(?:colon|sol|period)\b/.test(entity)
  const code = hex === undefined ? Number(digits) : Number.parseInt(hex, 16)
  return code < 128 && /[A-Za-z0-9:/.]/.test(String.fromCodePoint(code))
}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Match an address of these hosts: one that stands alone, and the destination of a link without a title. */
type Own = { readonly bare: RegExp; readonly destination: RegExp }

const compiled = new WeakMap<LinkHosts, Own>()

/**
 * Only a path may follow the host, as a comma or a bracket would still be part of its name, and no query the path: what
 * looks like a destination may be a bare address, which ends at a space.
 */
const compileHosts = (hosts: LinkHosts): Own => {
  const known = compiled.get(hosts)
  if (known) return known
  const { server, allowed = [] } = hosts
  const names = allowed.map((host) =>
    host.startsWith('*.') ? `(?:[a-z\\d-]+\\.)+${escape(host.slice(2))}` : escape(host),
  )
  const ways = [
    ...(server === undefined ? [] : [{ origin: escape(server), path: '[/#][\\w./~%+,;=:@#!-]*' }]),
    ...(names.length === 0
      ? []
      : [{ origin: `https?://(?:${names.join('|')})`, path: '[/#?][\\w./~%+,;=:@#!?&$-]*' }]),
  ]
  const toPattern = (withPath: string, alone: string): RegExp => {
    const all = ways.map(({ origin, path }) => `${origin}(?:${path}${withPath}|${alone})`)
    return new RegExp(all.length === 0 ? '(?!)' : all.join('|'), 'iy')
  }
  const own = {
    bare: toPattern(`(?=[)>\\]"'*|.,;:!]*(?:[\\s<]|$))`, '(?=[.,;:!)]*(?:\\s|$))'),
    destination: toPattern('\\)(?![^\\s<]*\\?)', '(?=\\)[.,;:!)]*(?:\\s|$))'),
  }
  compiled.set(hosts, own)
  return own
}
