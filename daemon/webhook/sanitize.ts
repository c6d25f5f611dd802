/*
 * Text that strangers wrote, made harmless for a language model: nothing in it is invisible to a person,
 * nothing can be taken for our markers or for the end of a turn. Words stay readable. Linear in the
 * length of the text, whatever it contains.
 */

/**
 * Characters that show nothing: controls but tab and line feed, and what Unicode calls default-ignorable:
 * zero-width and formatting ones, bidirectional overrides, fillers, variation selectors (but one, of
 * emoji), and tags, which can spell hidden ASCII. Unicode Technical Reports 36 and 39.
 */
const invisible =
  /[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb](?<![\t\n]|\ufe0f)/gu
/** A selector of emoji behind anything else shows nothing, and many of them can spell something. */
const selectors = /(?<!\p{Emoji})\ufe0f/gu

/** Where one of these is, what is above may be. Nearly no text has one. */
const unusual = /[^\t\n -~]/

/**
 * What chat templates end a turn or change the speaker with: <|im_start|>, <｜User｜>, [INST], <<SYS>>, <s>,
 * <start_of_turn>, <tool_call>, and a line that begins with Human:, Assistant: or System:. Each with a
 * character that is in all of it: V8 finds that one fifty times as fast as it finds that there is no token.
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
 * Makes a text from outside harmless; see the head of this file. HTML comments are taken out of a text,
 * and shown in JSON, where one could begin in one value and end in another.
 */
export const sanitize = (text: string, isJson = false): string => {
  const visible = unusual.test(text) ? showAll(text) : text
  return breakChatTokens(breakMarkers(isJson ? showComments(visible) : takeCommentsOut(visible)))
}

const showAll = (text: string): string =>
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

/** HTML comments show nothing where people read: they are taken out, and that is said. */
const takeCommentsOut = (text: string): string => {
  let result = ''
  let from = 0
  for (;;) {
    const start = text.indexOf('<!--', from)
    if (start === -1) return result + text.slice(from)
    const end = text.indexOf('-->', start + 4)
    // One without an end is shown as text.
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
 * A bracket and, soon after it, the words of our markers, whatever characters stand between. The signs
 * × and ℮ may be a letter of a word as well as what stands before one.
 */
const marker =
  /[<([{][^a-z0-9]{0,8}(?:[e℮]nd)?[^a-z0-9]{0,8}[e℮]v[e℮]nt(?=[^a-z0-9]{0,8}t[e℮][x×]t)/gu

/** The words of a marker where no other script plays a part. */
const asciiWords = /event[^a-z0-9]{0,8}text/i

/**
 * Breaks what reads like our markers: upper or lower case, full-width, styled or accented letters,
 * look-alikes from other scripts. The words stay, with a dot between them, so that no marker is left.
 */
const breakMarkers = (text: string): string => {
  // Nearly no text has one, and to know where it stands takes ten times as long.
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

/** A text as a hasty reader takes it in; no character becomes another one for its neighbours. */
const foldWhole = (text: string): string =>
  isAscii(text)
    ? text.toLowerCase()
    : text
        .normalize('NFKD')
        .replaceAll(/\p{M}/gu, '')
        .toLowerCase()
        .replace(anyLookAlike, (other) => lookAlikes.get(other) ?? other)

/** Nearly all texts are: nothing to fold but the case. Whatever is not takes more bytes than units. */
const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

type Folded = { readonly folded: string; readonly placeOf: (index: number) => number }

/** The same, and where in the text itself each unit of that comes from. */
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
