/** Characters that terminals draw two columns wide (Unicode TR 11: East Asian wide, and emoji). */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
const combining = /\p{Mn}/u

/** Columns that a terminal draws a text in. */
export const widthOf = (text: string): number => {
  let width = 0
  for (const character of text)
    width += combining.test(character) ? 0 : wide.test(character) ? 2 : 1
  return width
}
