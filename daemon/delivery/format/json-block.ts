/** An answer in which the agent wrote something for a program. */
export type AnswerWithBlock = {
  /** The answer without the block; the whole answer where there is none that can be read. */
  readonly text: string
  /** The value of the block; undefined where there is none. */
  readonly value: unknown
  /** True for a block that seems to be meant, and is not JSON. */
  readonly isUnreadable: boolean
}

const openingFence = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)/

/**
 * Takes the last fenced block of JSON that has this key out of an answer. One whose end is missing goes on to
 * the end of the answer.
 */
export const takeJsonBlock = (answer: string, key: string): AnswerWithBlock => {
  const lines = answer.split('\n')
  let block: { readonly from: number; readonly to: number; readonly json: string } | undefined
  let fence: { readonly from: number; readonly mark: string; readonly language: string } | undefined
  const end = (to: number): void => {
    if (!fence) return
    const { from, language } = fence
    const json = lines.slice(from + 1, to).join('\n')
    if (/^(json)?$/i.test(language) && json.includes(`"${key}"`)) block = { from, to, json }
    fence = undefined
  }
  lines.forEach((line, index) => {
    if (fence) {
      if (isClosing(line, fence.mark)) end(index)
      return
    }
    const [, mark, language = ''] = openingFence.exec(line) ?? []
    if (mark !== undefined) fence = { from: index, mark, language }
  })
  end(lines.length)
  if (!block) return { text: answer, value: undefined, isUnreadable: false }
  const value = parseJson(block.json)
  if (value === undefined) return { text: answer, value, isUnreadable: true }
  const rest = [...lines.slice(0, block.from), ...lines.slice(block.to + 1)]
  return { text: rest.join('\n').trim(), value, isUnreadable: false }
}

const isClosing = (line: string, mark: string): boolean => {
  const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*\r?$/.exec(line)?.[1] ?? ''
  return closing[0] === mark[0] && closing.length >= mark.length
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
