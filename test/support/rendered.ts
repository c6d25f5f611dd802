import cmark from 'cmark-gfm-js'

/** What a reader of GitHub's Markdown would see and could click, by GitHub's own renderer. */
export type Rendered = {
  readonly html: string
  /** Outside of code, without tags. */
  readonly text: string
  readonly links: readonly string[]
  readonly images: readonly string[]
  /** Tags that have attributes and are not the renderer's, comments, declarations. */
  readonly declared: readonly string[]
}

export const render = (markdown: string): Rendered => {
  const html = cmark.convertUnsafe(markdown, cmark.Option.footnotes)
  const text = html
    .replaceAll(/<pre[^]*?<\/pre>|<code[^]*?<\/code>/g, '\u0000')
    .replaceAll(/<\/?[a-z][^>]*>/gi, '\u0001')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
  const all = (pattern: RegExp) => [...html.matchAll(pattern)].map(([, found = '']) => found)
  return {
    html,
    text,
    links: all(/<a [^>]*href="([^"]*)"/gi),
    images: all(/<img[^>]*?(?:src="?([^"\s>]*)|>)/gi),
    declared: all(
      /(<[!?][^>]*>|<(?:script|style|iframe|form|svg|video|source|object|meta|base|link|pre [^l])[^>]*>)/gi,
    ),
  }
}
