import { Help } from 'commander'

/** What a description needs to stand beside its term; with less it stands below. */
const besideAtLeast = 30
const indent = '      '

/** How commander lays help out, on narrow terminals too. */
export const helpLayout = {
  minWidthToWrap: 20,
  formatItem: (term: string, termWidth: number, description: string, helper: Help): string => {
    const width = helper.helpWidth ?? 80
    if (description === '' || width - termWidth - 4 >= besideAtLeast)
      return Help.prototype.formatItem.call(helper, term, termWidth, description, helper)
    const below = helper.boxWrap(description, width - indent.length)
    return `  ${term}\n${below.replace(/^/gm, indent)}`
  },
}

/** Our help texts are written for so many columns. */
const written = 80

/**
 * Fits the paragraphs of a help text into fewer columns than it was written for. Lines that begin with a
 * space are to be copied, and stay.
 */
export const fitted = (text: string, columns: number): string =>
  columns >= written
    ? text
    : text
        .replace(/(?<=^\S.*)\n(?=\S)/gm, ' ')
        .replace(/^\S.*$/gm, (line) => (line.length > columns ? broken(line, columns) : line))

const broken = (line: string, columns: number): string =>
  line.replace(new RegExp(`(.{1,${columns}})(?: +|$)`, 'g'), '$1\n').trimEnd()
