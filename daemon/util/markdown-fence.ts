/** An open code fence of Markdown: what is needed to close it and to open it again. */
export type Fence = { readonly mark: string; readonly indent: string; readonly language: string }

const fenceLine = /^([ \t]{0,20})(`{3,20}(?=[^`]*$)|~{3,20})[ \t]*([\w+#.-]{0,20})/

/** The open fence after a line, given the one before it (CommonMark section 4.5). */
export const fenceAfter = (line: string, open: Fence | undefined): Fence | undefined => {
  const match = fenceLine.exec(line)
  if (!match) return open
  const [, indent = '', mark = '', language = ''] = match
  if (!open) return { mark, indent, language }
  const isClosing =
    mark[0] === open.mark[0] && mark.length >= open.mark.length && line.trim() === mark
  return isClosing ? undefined : open
}

/** The fence that is open at the end of a text. */
export const openFenceIn = (text: string): Fence | undefined => {
  let open: Fence | undefined
  for (const line of text.split('\n')) open = fenceAfter(line, open)
  return open
}

/** The line that closes a fence. */
export const closingLine = ({ indent, mark }: Fence): string => `${indent}${mark}`

/** The line that opens it again. */
export const openingLine = ({ indent, mark, language }: Fence): string =>
  `${indent}${mark}${language}`
