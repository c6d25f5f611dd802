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

/** What is wrong with one webhook, agent or target; `what` goes on after its name. */
export type Fault = {
  readonly code: string
  readonly about: About
  readonly what: string
  readonly hint: string
}

/** Makes lists with one fault, for functions that return any number of them. */
export const faultAbout =
  (about: About) =>
  (code: string, what: string, hint: string): Fault[] => [{ code, about, what, hint }]

/** The fault as a sentence that names its subject, by default what `about` names first. */
export const toWarning = ({ code, about, what, hint }: Fault, subject?: string): Warning => {
  const [kind, name] = Object.entries(about)[0] ?? []
  return { code, detail: `${subject ?? `${kind} ${name}`}: ${what}`, hint, about }
}
