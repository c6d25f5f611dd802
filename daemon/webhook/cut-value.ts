/** The first so many UTF-16 units of a text, never half a character, with a mark of what is missing. */
export const cutValue = (text: string, maxLength: number, fullLength = text.length): string => {
  if (text.length <= maxLength && fullLength <= maxLength) return text
  const isHalf = /[\ud800-\udbff]/.test(text.charAt(maxLength - 1))
  const kept = text.slice(0, isHalf ? maxLength - 1 : maxLength)
  return `${kept}[cut: ${kept.length} of ${fullLength} characters]`
}
