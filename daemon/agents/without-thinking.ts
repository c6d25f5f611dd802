import { openFenceIn } from '../code-fence.ts'

/**
 * What a model said to itself before its answer, where its server does not keep that apart (llama.cpp and vLLM
 * without their reasoning format, older Ollama), is no part of the answer. One that never ends is left.
 */
export const withoutThinking = (text: string): string => {
  const begun = /^\s*<think>/.test(text)
  const end = begun ? text.indexOf(thinkingEnd) : endOfBegunThinking(text)
  return end === -1 ? text : text.slice(end + thinkingEnd.length).trimStart()
}

const thinkingEnd = '</think>'

/**
 * Where the template of the model has begun the thought itself (DeepSeek-R1, QwQ), only its end is in the
 * text: alone in its line, as these models write it. A text that speaks of the mark has it within a line or in
 * code, or what it ends before it; half of such a text is worse to lose than a thought is to read.
 */
const endOfBegunThinking = (text: string): number => {
  const end = text.indexOf(thinkingEnd)
  if (end === -1) return -1
  const before = text.slice(0, end)
  const rest = text.slice(end)
  const isAlone =
    /(?:^|\n)[ \t]{0,3}$/.test(before.slice(-20)) && rest.split('\n', 1)[0]?.trim() === thinkingEnd
  return isAlone && !before.includes('<think>') && !openFenceIn(before) ? end : -1
}
