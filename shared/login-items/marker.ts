/** What a file of ours is about; the last line of its header, in every format. */
export type Marker = {
  readonly node: string
  /** The program that Node runs. */
  readonly program: string
  readonly home: string
}

const words = 'Written by doorward daemon install, which overwrites changes: '

/**
 * One line by which we know a file of ours again, to be put into a comment. Holds no control character
 * and no `--`, which would end a comment of XML.
 */
export const markerLine = ({ node, program, home }: Marker): string =>
  words + JSON.stringify({ node, program, home }).replaceAll('--', String.raw`-\u002d`)

/** What a file says about itself, or undefined when it is not ours. */
export const readMarker = (text: string): Marker | undefined => {
  const start = text.indexOf(words)
  if (start === -1) return undefined
  const line = text.slice(start + words.length).split('\n', 1)[0] ?? ''
  try {
    const found = JSON.parse(line.replace(/\}[^}]*$/, '}')) as Partial<Record<string, unknown>>
    const { node, program, home } = found
    return typeof node === 'string' && typeof program === 'string' && typeof home === 'string'
      ? { node, program, home }
      : undefined
  } catch {
    return undefined
  }
}
