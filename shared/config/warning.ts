import type { About } from '../errors.ts'

/** Something that works but should not stay so; shown by `config check`, the log and the tray. */
export type Warning = {
  readonly code: string
  readonly detail: string
  readonly hint: string
  readonly about?: About
}

/** A list with one warning, for functions that return any number of them. */
export const warn = (code: string, detail: string, hint: string, about?: About): Warning[] => [
  { code, detail, hint, ...(about && { about }) },
]

/** The warnings with what all of them are about. */
export const warnAbout = (about: About, warnings: readonly Warning[]): Warning[] =>
  warnings.map((warning) => ({ ...warning, about: { ...about, ...warning.about } }))

/** What is wrong with one webhook, agent or target; `what` goes on after its name. */
export type Fault = {
  readonly code: string
  readonly about: About
  readonly what: string
  readonly hint: string
}

/** The fault as a sentence that names its subject. */
export const toWarning = ({ code, about, what, hint }: Fault): Warning => {
  const [kind, name] = Object.entries(about)[0] ?? []
  return { code, detail: `${kind} ${name}: ${what}`, hint, about }
}
