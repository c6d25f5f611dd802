import { type Markup, markup } from '../markup.ts'

/** One of the steps, as it stands. */
export type Step = {
  readonly name: string
  readonly title: string
  readonly isDone: boolean
  readonly content: Markup
}

/** A link with which a person chooses one of several. */
export const choice = (to: string, label: string, isChosen: boolean): Markup =>
  markup`<a class="button" href="${to}"${isChosen && markup` aria-current="true"`}>${label}</a>`
