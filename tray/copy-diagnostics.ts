import { join } from 'node:path'
import type { Home } from '../shared/home/home.ts'
import { writeWhole } from '../shared/home/files.ts'
import { copyText } from './clipboard.ts'
import { collectDiagnostics } from './diagnostics.ts'
import { type Note, bodyOf, titleOf } from './note.ts'
import { openPath } from './open-path.ts'

/** Puts diagnostics on the clipboard, or where there is none into a file that it opens. */
export const copyDiagnostics = async (home: Home, show: (note: Note) => void): Promise<void> => {
  const text = await collectDiagnostics(home)
  if (await copyText(text))
    return show({
      title: titleOf('diagnostics copied'),
      body: bodyOf('Paste them where you ask for help. They hold no token, secret or payload.'),
    })
  // More desktops have a program for a text than for JSON.
  const path = join(home.logs, 'diagnostics.txt')
  await writeWhole(path, text)
  show({
    title: titleOf('diagnostics written'),
    body: bodyOf(`There is no program here for the clipboard. They are in\n${path}`),
  })
  await openPath(path)
}
