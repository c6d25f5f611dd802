import { once } from 'node:events'

/** Shows a file or folder in the program the desktop has for it. Answers false if there is none. */
export const openPath = async (path: string): Promise<boolean> => {
  const { default: open } = await import('open')
  try {
    const child = await open(path)
    const [code] = (await once(child, 'exit')) as [number | null]
    return code === 0 || code === null
  } catch {
    return false
  }
}
