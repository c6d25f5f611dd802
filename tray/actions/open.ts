import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../shared/version.ts'
import { toBody, type Note, toTitle } from '../notifications/note.ts'
import { providerTitle, upperFirst } from '../wording.ts'

/** A program that still runs after this shows something; a browser never exits. */
const patienceMs = 4000

/**
 * Shows a file, folder or page in the program that the desktop has for it. Returns false if there is
 * none, which only the exit code of the opener shows.
 */
export const openPath = async (path: string): Promise<boolean> => {
  try {
    const { default: open } = await import('open')
    const child: ChildProcess = await open(path)
    if (child.exitCode !== null) return child.exitCode === 0
    const signal = AbortSignal.timeout(patienceMs)
    const [code] = (await once(child, 'exit', { signal })) as [number | null]
    return code === 0 || code === null
  } catch (error) {
    return error instanceof Error && error.name === 'AbortError'
  }
}

/** The page on how to get an OAuth client; made by scripts/draw-guide.mjs. */
export const guidePage = fileURLToPath(new URL('assets/guide/providers.html', packageFolder))

/** Opens the page, and shows the hint as well: a sandboxed browser may not be allowed to read the file. */
export const openGuide = async (
  provider: string | undefined,
  hint: string | undefined,
  show: (note: Note) => void,
): Promise<void> => {
  const isOpen = await openPath(guidePage)
  if (isOpen && hint === undefined) return
  const name = provider === undefined ? 'a login' : providerTitle(provider)
  show({
    title: toTitle(`${name} needs an OAuth client`),
    body: toBody([upperFirst(hint ?? ''), isOpen ? '' : guidePage].join('\n')),
  })
}
