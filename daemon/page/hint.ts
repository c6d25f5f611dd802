import { type Markup, markup } from './markup.ts'

/** A way out, as it is written everywhere, with its commands set as such. For the eye alone. */
export const renderHint = (hint: string): Markup =>
  markup`<p class="hint">${hint
    .split(/(?<=[;:,]) |(?<=, or) /)
    .map((part, index) => markup`${index > 0 && ' '}${renderPart(part)}`)}</p>`

const renderPart = (part: string): Markup => {
  const [, command, rest] = /^(doorward .*?)([;:,]?(?: or)?)$/.exec(part) ?? []
  return command === undefined ? markup`${part}` : markup`<code>${command}</code>${rest}`
}
