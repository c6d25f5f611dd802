import { dirname, join, resolve, sep } from 'node:path'
import { compileTest } from '../../../shared/filter/tests.ts'
import { expandTilde } from '../../../shared/home/home.ts'

/** The folder in which the files of a glob can be: all before its first star. */
export const toBase = (glob: string): string => {
  const whole = expandTilde(glob)
  const at = whole.search(/[*?[{]/)
  if (at === -1) return resolve(whole)
  return resolve(
    whole.slice(0, at).endsWith('/') ? whole.slice(0, at) : dirname(whole.slice(0, at)),
  )
}

/** True for the paths that one of the globs matches; `**` also stands for no folder. */
export const toFileTest = (globs: readonly string[]): ((path: string) => boolean) => {
  const whole = globs.map((glob) => {
    const base = toBase(glob)
    const rest = expandTilde(glob).slice(base.length)
    return /[*?[{]/.test(glob) ? `${join(base, '/')}${rest.replace(/^\//, '')}` : base
  })
  const all = whole.flatMap((glob) => [glob, glob.replaceAll('**/', '')])
  const { accepts } = compileTest('glob', [...new Set(all)])
  return (path) => accepts(path.split(sep).join('/'))
}
