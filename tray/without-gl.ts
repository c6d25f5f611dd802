/**
 * Runs `start`, and until it is done lets the programs that are started know that GTK is to leave
 * OpenGL alone: the first program of a display would else load the whole of Mesa to choose a visual,
 * 55 MB and 60 ms for a menu that draws none of it. Not for longer, because what is opened for the
 * user later may well draw with it. A value that the user has set stays.
 */
export const withoutGl = async (start: () => Promise<void>): Promise<void> => {
  if (process.platform !== 'linux' || process.env['GDK_GL'] !== undefined) return start()
  process.env['GDK_GL'] = 'disable'
  try {
    await start()
  } finally {
    delete process.env['GDK_GL']
  }
}
