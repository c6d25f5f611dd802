const codes: ReadonlySet<string> = new Set([
  'body-limit-too-large',
  'config-not-watched',
  'dangerous-combination',
  'filter-path-prefix',
  'placeholder-unfinished',
  'provider-incomplete',
  'restart-needed',
  'revocation-pending',
  'scheme-differs',
  'secret-shape',
  'target-not-encrypted',
  'version-differs',
  'webhook-unsigned',
])

/**
 * True for a problem that can wait: it has its row in the menu, and the icon goes on saying what runs. One
 * that is not known, of a newer daemon, cannot.
 */
export const isAdvice = ({ code }: { readonly code: string }): boolean => codes.has(code)
