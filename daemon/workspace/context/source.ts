import type { ReviewMarks } from '../../delivery/review-marks.ts'
import type { Workspace } from '../workspaces.ts'
import type { GithubReader } from './github.ts'
import { valueAt } from '../../util/payload-path.ts'

/** The pull request, issue or run that an event of GitHub is about. */
export type Subject = {
  /** The pull request or issue. */
  readonly issue?: { readonly number: number; readonly isPull: boolean }
  /** A run of a workflow, a job of it, or a check. */
  readonly run?: {
    readonly kind: 'workflow_run' | 'workflow_job' | 'check_run'
    readonly id: number
  }
}

const kinds = ['workflow_run', 'workflow_job', 'check_run'] as const

export const findSubject = (event: unknown): Subject => {
  const numberAt = (...path: string[]): number | undefined => {
    const value = valueAt(event, path)
    return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
  }
  const kind = kinds.find((name) => numberAt(name, 'id') !== undefined)
  const id = kind && numberAt(kind, 'id')
  const pull =
    numberAt('pull_request', 'number') ?? (kind && numberAt(kind, 'pull_requests', '0', 'number'))
  const number = pull ?? numberAt('issue', 'number')
  const isPull = pull !== undefined || valueAt(event, ['issue', 'pull_request']) !== undefined
  return {
    ...(number !== undefined && { issue: { number, isPull } }),
    ...(kind && id !== undefined && { run: { kind, id } }),
  }
}

/** Calls with requests for one repository. */
export type AskSource = <Value>(call: (github: GithubReader) => Promise<Value>) => Promise<Value>

/** The sources of a context. */
export type ContextSource = {
  readonly workspace: Workspace
  readonly limitBytes: number
  /** Requests for the repository of the workspace. */
  readonly github: AskSource
  readonly about: Subject
  /** The marks of the texts that the rule has posted there; undefined where this machine cannot know them. */
  readonly marksAt?: ((address: string) => ReviewMarks) | undefined
  /** Makes text of a change harmless. */
  readonly show: (text: string) => string
}

/** The text of one context; `note` where something was left out, for the detail of the event. */
export type Context = {
  readonly text: string
  readonly note?: string | undefined
  /** The first files that it leaves out or cuts. */
  readonly notRead?: readonly string[] | undefined
}

/*
 * Text of a change for a reader who decides by what it says: nothing in it is invisible.
 */

/** Controls but tab and line feed, directions and what Unicode calls default-ignorable; see `sanitize.ts`. */
const hidden =
  /\r(?!\n)|[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800\ufff9-\ufffb](?<![\t\n\r]|\ufe0f)/gu

/** Each hidden character as `\u{202e}`. A carriage return at the end of a line stays. */
export const showHidden = (text: string): string => text.replace(hidden, escape)

const escape = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`

const maxNameLength = 300

/** The name of a file on one line, in quotes where it has characters that could mislead. */
export const showName = (name: string): string => {
  const short = name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name
  const shown = showHidden(short.replaceAll('\\', '\\\\'))
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\t', String.raw`\t`)
    .replaceAll('\r', String.raw`\r`)
  return shown === short && !/^\s|[\s"]$|"|=>/.test(name)
    ? name
    : `"${shown.replaceAll('"', '\\"')}"`
}

/** The whole lines of a text that fit into a number of bytes. */
export const cutLines = (text: Buffer, limitBytes: number): Buffer =>
  text.length <= limitBytes ? text : text.subarray(0, text.lastIndexOf('\n', limitBytes - 1) + 1)

/** As many of the first, or of the last, items as fit into a number of bytes. Says how many are left out. */
export const cutList = (
  items: readonly string[],
  what: string,
  limitBytes: number,
  keeps: 'first' | 'last' = 'first',
): Context => {
  const isFirst = keeps === 'first'
  const fitting = countFitting(isFirst ? items : items.toReversed(), limitBytes)
  const left = items.length - fitting
  if (left === 0) return { text: items.join('') }
  const note = `${left} of ${items.length} ${what}`
  const cut = `[left out, as more than ${formatSize(limitBytes)}: ${isFirst ? '' : 'the oldest '}${note}]\n`
  return {
    text: isFirst
      ? `${items.slice(0, fitting).join('')}${cut}`
      : `${cut}${items.slice(left).join('')}`,
    note: `the ${what} leave out ${note}`,
  }
}

/** How many of the first texts fit into a number of bytes. */
export const countFitting = (texts: readonly string[], limitBytes: number): number => {
  let room = limitBytes
  const firstLeft = texts.findIndex((text) => (room -= Buffer.byteLength(text)) < 0)
  return firstLeft === -1 ? texts.length : firstLeft
}

/** `204,800 bytes` as `200 KB`. */
export const formatSize = (bytes: number): string =>
  bytes < 1024 ** 2 ? `${Math.round(bytes / 1024)} KB` : `${Math.round(bytes / 1024 ** 2)} MB`
