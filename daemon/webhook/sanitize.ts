/*
 * Makes text from outside harmless for a language model: no part of it is invisible to a person, and none
 * looks like our markers or the end of a turn. Words stay readable. The time is linear in the length of
 * the text, whatever it contains.
 */

/**
 * Invisible characters: controls except tab and line feed, and what Unicode calls default-ignorable:
 * zero-width and formatting ones, bidirectional overrides, fillers, variation selectors (but one, of
 * emoji), and tags, which can spell hidden ASCII. Unicode Technical Reports 36 and 39.
 */
const invisible =
  /[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb](?<![\t\n]|\ufe0f)/gu
/** An emoji selector after anything else is invisible, and many of them can encode text. */
const selectors = /(?<!\p{Emoji})\ufe0f/gu

/** Only a text with one of these can contain the above. Few texts have one. */
const unusual = /[^\t\n -~]/

/**
 * What chat templates end a turn or change the speaker with: <|im_start|>, <｜User｜>, [INST], <<SYS>>, <s>,
 * <start_of_turn>, <tool_call>, and a line that begins with Human:, Assistant: or System:. Each with a
 * character that it always contains: searching for that one first is fifty times as fast.
 */
const chatTokens = [
  {
    has: '<',
    token:
      /<(?=[|\uff5c]|<\/?SYS>>|\/?(?:s|bos|eos|pad|unk|system|user|assistant|human|instructions?|think|thinking|tool|tools|tool_call|tool_response|tool_result|function_calls?|function_results?|invoke|start_of_turn|end_of_turn|turn|image_soft_token)>)/gi,
    broken: '$& ',
  },
  { has: '>', token: /[|\uff5c](?=>)/g, broken: '$& ' },
  {
    has: '[',
    token: /\[(?=\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|BOS|EOS)\])/gi,
    broken: '$& ',
  },
  { has: ':', token: /^([ \t]*)(human|assistant|system)(?=[ \t]*:)/gim, broken: '$1[$2]' },
]

/**
 * Makes a text from outside harmless; see the head of this file. HTML comments are removed from a text,
 * but not from JSON, where one could begin in one value and end in another.
 */
export const sanitize = (text: string, isJson = false): string => {
  const visible = unusual.test(text) ? showAll(text) : text
  return breakChatTokens(breakMarkers(isJson ? showComments(visible) : takeCommentsOut(visible)))
}

/** The text without its invisible characters, and with plain line ends. */
export const showAll = (text: string): string =>
  text
    .replaceAll(/\r\n?|[\u2028\u2029]/g, '\n')
    .replace(invisible, '')
    .replace(selectors, '')

const breakChatTokens = (text: string): string => {
  let result = text
  for (const { has, token, broken } of chatTokens)
    if (result.includes(has)) result = result.replace(token, broken)
  return result
}

const showComments = (text: string): string => text.replaceAll('<!--', '<! --')

/** HTML comments are invisible on web pages: they are removed, and a note says that. */
const takeCommentsOut = (text: string): string => {
  let result = ''
  let from = 0
  for (;;) {
    const start = text.indexOf('<!--', from)
    if (start === -1) return result + text.slice(from)
    const end = text.indexOf('-->', start + 4)
    // A comment without an end is visible text.
    if (end === -1) return result + showComments(text.slice(from))
    result += `${text.slice(from, start)}[HTML comment of ${end - start - 4} characters taken out]`
    from = end + 3
  }
}

/** Letters and brackets of other scripts that look like those of our markers. */
const lookAlikes = new Map(
  Object.entries({
    e: 'еεєҽ',
    v: 'νѵ',
    n: 'пηոռ',
    t: 'тτ',
    x: 'хχ',
    d: 'ԁɗ',
    '<': '‹«〈⟨《≪≺ᐸ❮❬⧼⟪',
  }).flatMap(([plain, others]) => others.split('').map((other) => [other, plain] as const)),
)

/**
 * A bracket and soon after it the words of our markers, with any characters between them. The signs × and ℮
 * may be a letter of a word or a bracket before it.
 */
const marker =
  /[<([{][^a-z0-9]{0,8}(?:[e℮]nd)?[^a-z0-9]{0,8}[e℮]v[e℮]nt(?=[^a-z0-9]{0,8}t[e℮][x×]t)/gu

/** The words of a marker in plain ASCII. */
const asciiWords = /event[^a-z0-9]{0,8}text/i

/**
 * Breaks text that reads like our markers: upper or lower case, full-width, styled or accented letters,
 * look-alikes from other scripts. A dot is put between the words, so that no marker is left.
 */
const breakMarkers = (text: string): string => {
  // Few texts have one, and finding its position takes ten times as long.
  if (!asciiWords.test(text) && isAscii(text)) return text
  if (foldWhole(text).search(marker) === -1) return text
  const { folded, placeOf } = fold(text)
  let result = ''
  let from = 0
  for (const match of folded.matchAll(marker)) {
    const middle = placeOf(match.index + match[0].length)
    result += `${text.slice(from, middle)}·`
    from = middle
  }
  return result + text.slice(from)
}

const anyLookAlike = new RegExp(`[${[...lookAlikes.keys()].join('')}]`, 'g')

/** A text as a hasty reader sees it; each character is folded independently of the others. */
const foldWhole = (text: string): string =>
  isAscii(text)
    ? text.toLowerCase()
    : text
        .normalize('NFKD')
        .replaceAll(/\p{M}/gu, '')
        .toLowerCase()
        .replace(anyLookAlike, (other) => lookAlikes.get(other) ?? other)

/** True for nearly all texts, where only the case is folded. Other texts have more bytes than units. */
const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

type Folded = { readonly folded: string; readonly placeOf: (index: number) => number }

/** The folded text, and the position in the original text of each of its units. */
const fold = (text: string): Folded => {
  if (isAscii(text)) return { folded: foldWhole(text), placeOf: (index) => index }
  let folded = ''
  const places: number[] = []
  let place = 0
  for (const character of text) {
    const letters = foldWhole(character)
    folded += letters
    for (let index = 0; index < letters.length; index += 1) places.push(place)
    place += character.length
  }
  return { folded, placeOf: (index) => places[index] ?? text.length }
}
