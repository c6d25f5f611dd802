import { spawn } from 'node:child_process'
import { basename } from 'node:path'
import { DoorwardError, systemCode } from '../shared/errors.ts'

/** Editors that come back at once, before anything was edited, unless they are told to wait. */
const needsWait = /^(code|code-insiders|codium|cursor|subl|zed|atom)(\.(cmd|exe))?$/

/**
 * Opens a file in `$VISUAL`, else `$EDITOR`, else vi (Windows: notepad); gives the exit code or the signal
 * it ended with. Files that it makes are for this user alone. Throws `usage` when it cannot be run.
 */
export const runEditor = async (
  path: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number | string> => {
  const given = (env['VISUAL'] || env['EDITOR'] || '').trim()
  const [program, ...args] = wordsOf(given || (process.platform === 'win32' ? 'notepad' : 'vi'))
  if (program === undefined || program === '') throw cannotRun(given, 'it names no program')
  if (needsWait.test(basename(program)) && !args.some((arg) => /^(-w|--wait)$/.test(arg)))
    args.push('--wait')
  const before = process.umask(0o077)
  try {
    return await new Promise<number | string>((resolve, reject) => {
      const child = spawn(program, [...args, path], { stdio: 'inherit' })
      // Ctrl-C in the editor is the editor's.
      const ignore = () => undefined
      process.on('SIGINT', ignore)
      child.once('error', (error) => {
        process.off('SIGINT', ignore)
        const why =
          systemCode(error) === 'ENOENT' ? 'there is no such program' : `${systemCode(error)}`
        reject(cannotRun(program, why, error))
      })
      child.once('exit', (exitCode, signal) => {
        process.off('SIGINT', ignore)
        resolve(exitCode ?? signal ?? 'a signal')
      })
    })
  } finally {
    process.umask(before)
  }
}

const cannotRun = (program: string, why: string, cause?: unknown): DoorwardError =>
  new DoorwardError('usage', `cannot run the editor ${program}: ${why}`, {
    cause,
    hint: 'set VISUAL or EDITOR to a program that edits text, for example EDITOR=nano',
  })

/** Splits at spaces, but not within quotes, as a shell does; nothing else of a shell is known here. */
export const wordsOf = (text: string): string[] =>
  [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"']+)+/g)].map(([word]) =>
    word.replaceAll(
      /"([^"]*)"|'([^']*)'/g,
      (_, double?: string, single?: string) => double ?? single ?? '',
    ),
  )
