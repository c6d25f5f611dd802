import { readFile, readdir } from 'node:fs/promises'
import { type Tokens, lexer, walkTokens } from 'marked'
import { packageFolder } from '../../../shared/version.ts'

export const docs = new URL('docs/', packageFolder)

export const readPage = async (name: string): Promise<string> =>
  readFile(new URL(name, docs), 'utf8')

/** All pages, as seen from `docs/`. */
export const listPages = async (): Promise<string[]> => [
  ...['README', 'SECURITY', 'CONTRIBUTING', 'CHANGELOG'].map((name) => `../${name}.md`),
  ...(await readdir(docs)).filter((name) => name.endsWith('.md')).toSorted(),
]

/** The blocks of code of a page that are in this language. */
export const blocksOf = (text: string, language: string): string[] =>
  lexer(text).flatMap((top) => {
    const found: string[] = []
    void walkTokens([top], (token) => {
      if (token.type === 'code' && token['lang'] === language)
        found.push((token as Tokens.Code).text)
    })
    return found
  })

/** What stands between back-ticks in the sentences of a page. */
export const spansOf = (text: string): string[] => {
  const found: string[] = []
  void walkTokens(lexer(text), (token) => {
    if (token.type === 'codespan') found.push((token as Tokens.Codespan).text)
  })
  return found
}
