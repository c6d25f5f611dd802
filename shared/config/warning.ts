/** Something that works but should not stay so; shown by `config check`, the log and the tray. */
export type Warning = { readonly code: string; readonly detail: string; readonly hint: string }

/** A list with one warning, for functions that return any number of them. */
export const warn = (code: string, detail: string, hint: string): Warning[] => [
  { code, detail, hint },
]
