import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Script } from 'node:vm'

/*
 * A file of `dist/bin` with the code that V8 has made of it before: to compile what runs at a start is a
 * quarter of the daemon's. `scripts/compile-ahead.mjs` says where that code comes from.
 */

/** What is asked of the module that a file is loaded as. */
export type LoadingModule = { readonly filename: string; exports: object }

/** A file that was loaded, for who keeps its code (`scripts/keep-compiled.cjs`) or tests it. */
export type Loaded = {
  readonly script: Script
  /** Where its code is, or would be: behind a seal. */
  readonly compiledPath: string
  readonly seal: (code: Buffer) => Buffer
}

/** Whoever puts a list here before is told of all that is loaded. */
const listKey = Symbol.for('doorward.loaded')

const sealBytes = 32

/**
 * Runs `NAME.code.cjs` in place of the module `NAME.cjs`. Code that another Node made, or for another
 * source, or that was damaged, is left alone; then the file is compiled as any other. It has no `import()`.
 */
export const loadCompiled = (module: LoadingModule, require: NodeJS.Require): void => {
  const path = module.filename.replace(/\.cjs$/, '.code.cjs')
  const compiledPath = path.replace(/\.cjs$/, '.compiled')
  // The build makes ASCII of it, whose characters are bytes.
  const source = readFileSync(path, 'latin1')
  const cachedData = readCompiled(compiledPath, source)
  const script = new Script(
    `(function (exports, require, module, __filename, __dirname) { ${source}\n})`,
    {
      filename: path,
      ...(cachedData && { cachedData }),
    },
  )
  const list = (globalThis as { [listKey]?: Loaded[] })[listKey]
  list?.push({ script, compiledPath, seal: (code) => sealOf(source, code) })
  // The build puts this function into the file itself, which exports it.
  module.exports = {}
  const run = script.runInThisContext() as (...parts: unknown[]) => void
  run.call(module.exports, module.exports, require, module, path, dirname(path))
}

/**
 * What a file with code begins with: a hash of what the code was made by, of, and of the code itself. V8
 * looks at the length of the source alone, and at nothing that would tell of damage.
 */
const sealOf = (source: string, code: Buffer): Buffer =>
  createHash('sha256')
    .update(`${process.version} ${process.arch} ${source.length}\n`)
    .update(source, 'latin1')
    .update(code)
    .digest()

const readCompiled = (path: string, source: string): Buffer | undefined => {
  // Code that counts what of it runs is made anew.
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return undefined
  try {
    const bytes = readFileSync(path)
    const code = bytes.subarray(sealBytes)
    return sealOf(source, code).equals(bytes.subarray(0, sealBytes)) ? code : undefined
  } catch {
    // Most often there is none: a package that was installed has none.
    return undefined
  }
}
