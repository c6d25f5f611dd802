/** What keeps a text that is no path of a webhook from being one, the first thing of several. */
export const pathFault = (text: string): string => {
  if (!text.startsWith('/')) return 'it does not start with /'
  const [foreign] = /[^A-Za-z0-9._~!$&'()*+,;=:@/-]/u.exec(text) ?? []
  if (foreign !== undefined)
    return `it has ${shown(foreign)} in it, and may have letters from a to z, digits and any of - . _ ~ ! $ & ' ( ) * + , ; = : @`
  return text.includes('/.') ? 'a part of it starts with a dot' : 'a part of it is empty'
}

/** Of a character that nobody would see, or that changes the one before it, its number. */
const shown = (character: string): string => {
  if (character === ' ') return 'a space'
  const number = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  return /[\p{C}\p{M}\p{Z}]/u.test(character) ? `the character U+${number}` : `"${character}"`
}
