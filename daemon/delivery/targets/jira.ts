import type { TargetSettings } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { isAddress } from '../../../shared/targets/schema.ts'
import { textAt } from '../../util/payload-path.ts'
import { DeliveryError, TokenRefused } from '../delivery-error.ts'
import { toAdf } from '../format/jira.ts'
import type { OwnMessages } from '../loop-guard.ts'
import { requestTarget, type TargetResponse, toStatusError } from '../request.ts'
import { type Asking, type Sender, type Sent, toMade } from '../sender.ts'
import { type TokenSource, withToken } from '../token.ts'

const target = 'jira'

/**
 * Comments on issues of Jira Cloud (developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-comments). It
 * has no place for a hidden mark, so a repeat cannot be recognised.
 */
export const createJira = (
  { api_url: apiUrl, email = '' }: TargetSettings['jira'],
  token: TokenSource,
  messages: OwnMessages,
): Sender => {
  const ask = async (asking: Asking, path: string, json?: object): Promise<TargetResponse> =>
    withToken(token, async (apiToken) => {
      if (apiUrl === undefined)
        throw new DeliveryError('permanent', 'targets.jira.api_url is missing in gateway.yaml')
      const credentials = Buffer.from(`${email}:${apiToken}`).toString('base64')
      const response = await requestTarget(new URL(`${apiUrl}/rest/api/3/${path}`), {
        target,
        headers: { authorization: `Basic ${credentials}`, accept: 'application/json' },
        json,
        attempt: asking,
      })
      const { status } = response
      if (status === 401) throw new TokenRefused()
      const failure = toStatusError(target, response, { hint: hints[status] })
      if (failure) throw failure
      return response
    })

  return {
    isIdempotent: false,
    send: async ({ address: issue, text }, attempt) =>
      messages.post(async () => {
        const { json } = await ask(attempt, `issue/${issue}/comment`, { body: toAdf(text) })
        messages.rememberComment(textAt(json, 'self') ?? '')
        return { made: toCommentPage(apiUrl, issue, textAt(json, 'id')) }
      }),
    check: async (_, asking) => ask(asking, 'myself'),
  }
}

/** The page of a comment: the address of the API has it, but for that of an app. */
export const toCommentPage = (site = '', issue: string, id = ''): Sent['made'] =>
  /^\d+$/.test(id) && !site.startsWith('https://api.atlassian.com/')
    ? toMade('comment', `${site}/browse/${issue}?focusedCommentId=${id}`, site)
    : undefined

/** The issue of an event. Throws `target-invalid`. */
export const findJiraIssue = (payload: unknown): string => {
  const key = textAt(payload, 'issue', 'key')
  if (key !== undefined && isAddress('jira', key)) return key
  throw new DoorwardError('target-invalid', 'this event of Jira is about no issue', {
    hint: 'name an issue: jira:PROJ-7',
  })
}

const hints: Readonly<Record<number, string>> = {
  400: 'Jira rejects this comment',
  403: 'the account of the token may not comment there',
  404: 'there is no such issue, or the account of the token may not see it; check targets.jira.api_url, too',
  413: 'the issue has too many comments',
}
