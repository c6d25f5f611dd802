import { toPlainLine } from '../../shared/text.ts'
import { textAt } from './payload-path.ts'

type Response = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly json: unknown
}

/** Why GitHub refuses, in its words; the hint is missing where scopes and roles decide. */
export type GithubRefusal = { readonly reason: string; readonly hint?: string }

const maxReasonLength = 240

/** Refusals that no scope and no new login changes, each with its way out. */
const elsewhere: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [
    /\bSAML\b/,
    'sign in to the organization in the browser, then log in again; a personal token is authorized in the settings of its account',
  ],
  [/\bIP allow list\b/i, 'an owner of the organization has to allow the address of this machine'],
  [/\barchived\b|\bread-only\b/i, 'unarchive it, or remove the target from deliver_to'],
  [
    /\bOAuth App access restrictions\b/i,
    "an owner of the organization has to approve the app under Settings > Third-party Access; or use a token or an app of the organization's own",
  ],
  [/\block(ed)?\b/i, 'unlock the conversation, or use a token with write access'],
  [/\b(suspended|blocked|disabled)\b/i, 'only GitHub or an administrator there can change this'],
]

/**
 * The reason of a 403 (docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api). The page that
 * authorizes a token for single sign-on is in a header, and is shown only where it is GitHub's.
 */
export const readGithubRefusal = (
  { status, headers, json }: Response,
  origin: string,
): GithubRefusal | undefined => {
  if (status !== 403) return undefined
  const page = findSsoPage(headers['x-github-sso']?.toString() ?? '', origin)
  const said = (textAt(json, 'message') ?? '').replaceAll(/\p{Cf}/gu, '')
  const [sentence = ''] = toPlainLine(said).split(/ For more information/)
  // GitHub repeats no token; another server in its place may.
  const words = sentence
    .replaceAll(/\b(gh[a-z]|github_pat)_\w+/g, '…')
    .slice(0, maxReasonLength)
    .replace(/\.$/, '')
  if (page !== undefined)
    return {
      reason: words || 'the organization requires single sign-on',
      hint: `authorize the token within an hour at ${page}`,
    }
  if (words === '') return undefined
  const [, hint] = elsewhere.find(([pattern]) => pattern.test(words)) ?? []
  return { reason: words, ...(hint !== undefined && { hint }) }
}

const findSsoPage = (header: string, origin: string): string | undefined => {
  const [, text = ''] = /^required; *url=(\S{1,1000})$/.exec(header) ?? []
  if (!URL.canParse(text)) return undefined
  const page = new URL(text)
  const isOwn = page.origin === 'https://github.com' || page.origin === origin
  const isSso = /^\/(orgs|enterprises)\/[\w.-]+\/sso$/.test(page.pathname)
  return isOwn && isSso && page.username === '' && page.password === '' ? page.href : undefined
}
