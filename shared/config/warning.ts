/** Something that works but should not stay so; shown by `config check`, the log and the tray. */
export type Warning = { readonly code: string; readonly detail: string; readonly hint: string }
