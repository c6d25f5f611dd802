import type { Template } from '../templates.ts'

/** What a rule says about the code that its agent sees. */
export type WorkspaceSettings = {
  /** `owner/name`, an https address, or a path on this machine. */
  readonly repo: Template
  readonly ref: Template
  readonly base: Template | undefined
  /** The login whose token fetches. */
  readonly login: string | undefined
  readonly access: 'read' | 'write'
  readonly depth: number | undefined
}

/** What `{{context.<name>}}` of a prompt can hold. */
export const contextNames = ['diff', 'files', 'commits', 'failed-logs', 'comments'] as const
export type ContextName = (typeof contextNames)[number]
