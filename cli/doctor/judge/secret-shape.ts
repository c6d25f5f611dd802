/*
 * What is wrong with a secret whatever its sender: a text that stands for one, or one that can be
 * guessed. Says nothing of the value itself.
 */

const placeholders =
  /^(change[-_ ]?me|replace[-_ ]?me|todo|fixme|tbd|secret|password|passw0rd|test|testing|example|dummy|foo|bar|abc|none|null|undefined|x{3,}|\*{3,}|\.{3,}|-+|12345\d*|0+)!?$/i
const placeholderWords =
  /^<.*>$|^\[.*\]$|^\$\{?\w+\}?$|\b(your|my)[-_ ]?(\w+[-_ ])?(secret|token|key|password)\b|change[-_ ]?me|replace[-_ ]?(me|this|with)|goes[-_ ]here|insert[-_ ]/i

const shortest = 16

/** Why a secret is none, or a bad one: `bad` when it cannot be meant. */
export const shapeFault = (
  value: string,
): { readonly reason: string; readonly bad: boolean } | undefined => {
  const text = value.trim()
  if (placeholders.test(text) || placeholderWords.test(text))
    return { reason: 'holds a placeholder, not a secret', bad: true }
  if (text.length < shortest)
    return { reason: `is shorter than ${shortest} characters: it can be guessed`, bad: false }
  if (new Set(text).size < 6)
    return { reason: 'repeats a few characters: it can be guessed', bad: false }
  return undefined
}
