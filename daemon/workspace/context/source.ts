import type { Workspace } from '../workspace.ts'
import type { GithubReader } from './github.ts'
import type { Subject } from './subject.ts'

/** Calls with requests for one repository. */
export type AskSource = <Value>(call: (github: GithubReader) => Promise<Value>) => Promise<Value>

/** The sources of a context. */
export type ContextSource = {
  readonly workspace: Workspace
  readonly limitBytes: number
  /** Requests for the repository of the workspace. */
  readonly github: AskSource
  readonly about: Subject
  /** Makes text of a change harmless. */
  readonly show: (text: string) => string
}

/** The text of one context; `note` where something was left out, for the detail of the event. */
export type Context = { readonly text: string; readonly note?: string | undefined }
