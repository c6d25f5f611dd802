import { DoorwardError } from '../errors.ts'
import { compileTest } from './tests.ts'

/*
 * `paths` and `paths_ignore` of a rule: globs as GitHub Actions has them.
 */

export type PathGlobs = {
  /** One of them has to match; undefined for any file. */
  readonly only: readonly string[] | undefined
  /** A file that one of them matches does not count. */
  readonly ignored: readonly string[]
}

/** Throws `config-invalid` for globs that cannot be used. */
export const parseGlobs = (globs: readonly string[], isIgnored: boolean): readonly string[] => {
  for (const glob of globs) {
    const invalid = (why: string, hint: string) =>
      new DoorwardError('config-invalid', `${JSON.stringify(glob)} ${why}`, { hint })
    if (glob.startsWith('!'))
      throw isIgnored
        ? invalid('begins with !', 'write it without !, into paths')
        : invalid('begins with !', `write ${glob.slice(1)} into paths_ignore`)
    if (/^\.?\//.test(glob))
      throw invalid('begins with a slash', `write ${glob.replace(/^\.?\/+/, '')}`)
  }
  compileGlobs(globs)
  return globs
}

/** True when one of the files counts. */
export const matchesPaths = ({ only, ignored }: PathGlobs, files: readonly string[]): boolean => {
  const isIgnored = compileGlobs(ignored)
  const isMeant = only ? compileGlobs(only) : () => true
  return files.some((file) => isMeant(file) && !isIgnored(file))
}

const compileGlobs = (globs: readonly string[]): ((file: string) => boolean) => {
  if (globs.length === 0) return () => false
  // `**/` also stands for no folder: `docs/**/*.md` has docs/a.md.
  const all = globs.flatMap((glob) => [glob, glob.replaceAll('**/', '')])
  return compileTest('glob', [...new Set(all)]).accepts
}
