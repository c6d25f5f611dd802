import { type Fence, fenceAfter } from '../../util/markdown-fence.ts'
import { parseJson } from '../../util/payload-path.ts'

/** An answer in which the agent wrote something for a program. */
export type AnswerWithBlock = {
  /** The answer without the block; the whole answer without a block that can be read. */
  readonly text: string
  /** The value of the block; undefined without one. */
  readonly value: unknown
  /** True for a block that seems to be meant, and is not JSON. */
  readonly isUnreadable: boolean
}

/**
 * Takes the last fenced block of JSON that has this key out of an answer. A block whose end is missing
 * continues to the end of the answer.
 */
export const takeJsonBlock = (answer: string, key: string): AnswerWithBlock => {
  const lines = answer.split('\n')
  let block: { readonly from: number; readonly to: number; readonly json: string } | undefined
  let fence: Fence | undefined
  let from = 0
  for (const [index, line] of [...lines, undefined].entries()) {
    const after = line === undefined ? undefined : fenceAfter(line, fence)
    if (!fence && after) from = index
    if (fence && !after) {
      const json = lines.slice(from + 1, index).join('\n')
      if (/^(json)?$/i.test(fence.language) && json.includes(`"${key}"`))
        block = { from, to: index, json }
    }
    fence = after
  }
  if (!block) return { text: answer, value: undefined, isUnreadable: false }
  const value = parseJson(block.json)
  if (value === undefined) return { text: answer, value, isUnreadable: true }
  const rest = [...lines.slice(0, block.from), ...lines.slice(block.to + 1)]
  return { text: rest.join('\n').trim(), value, isUnreadable: false }
}
