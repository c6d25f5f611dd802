import type { WriteStream } from 'node:tty'

/**
 * Node waits for a terminal with everything until that has taken what is written, and one that is not
 * read (Ctrl-S, a connection that stalls) takes nothing: no request would be answered meanwhile. There is
 * no other way to say so than this handle (nodejs.org/api/process.html, "A note on process I/O").
 */
export const neverBlock = (output: WriteStream): void => {
  const { _handle: handle } = output as unknown as {
    readonly _handle?: { readonly setBlocking?: (isBlocking: boolean) => void }
  }
  if (output.isTTY) handle?.setBlocking?.(false)
}
