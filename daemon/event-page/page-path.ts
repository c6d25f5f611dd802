const prefix = '/events/view/'

/** Where a one-time code leads. */
export const pagePath = (code: string): string => `${prefix}${code}`

/** The code in a path that is one of ours, else undefined. */
export const codeIn = (path: string): string | undefined =>
  /^\/events\/view\/([\w-]{43})$/.exec(path)?.[1]

/** The path as it may be logged: without a code. */
export const loggedPath = (path: string): string => (path.startsWith(prefix) ? `${prefix}…` : path)
