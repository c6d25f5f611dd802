import { fileURLToPath } from 'node:url'
import { packageFolder } from '../shared/version.ts'
import { type Note, bodyOf, titleOf } from './note.ts'
import { openPath } from './open-path.ts'
import { providerTitle, upperFirst } from './wording.ts'

/** The page of the documents that says how to get an OAuth client; made by scripts/draw-guide.mjs. */
export const guidePage = fileURLToPath(new URL('assets/guide/providers.html', packageFolder))

/** Opens the page, and says in short what it says at length: a browser may be barred from the file. */
export const openGuide = async (
  provider: string | undefined,
  hint: string | undefined,
  show: (note: Note) => void,
): Promise<void> => {
  const isOpen = await openPath(guidePage)
  if (isOpen && hint === undefined) return
  const name = provider === undefined ? 'a login' : providerTitle(provider)
  show({
    title: titleOf(`${name} needs an OAuth client`),
    body: bodyOf([upperFirst(hint ?? ''), isOpen ? '' : guidePage].join('\n')),
  })
}
