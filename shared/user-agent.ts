import { version } from './version.ts'

/**
 * The `User-Agent` by which the daemon can name who asks: `doorward-cli/0.1.0 (oauth exec git)`. The
 * comment (RFC 9110 section 10.1.5) is made printable ASCII of at most 60 characters that cannot end it.
 */
export const userAgentOf = (program: 'cli' | 'tray', what = ''): string => {
  const comment = what
    .replaceAll(/[^\x20-\x7e]|[()\\]/g, '')
    .trim()
    .slice(0, 60)
    .trim()
  return `doorward-${program}/${version}${comment === '' ? '' : ` (${comment})`}`
}
