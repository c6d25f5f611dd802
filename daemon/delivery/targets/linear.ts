import { createHash } from 'node:crypto'
import { DoorwardError } from '../../../shared/errors.ts'
import { isAddress } from '../../../shared/targets/schema.ts'
import { retryAfterIn } from '../../util/http-retry-after.ts'
import { listAt, textAt } from '../../util/payload-path.ts'
import { asReadOnly, DeliveryError, TokenRefused } from '../delivery-error.ts'
import type { OwnMessages } from '../loop-guard.ts'
import { requestTarget, type TargetResponse, toStatusError } from '../request.ts'
import { type Asking, type Message, type Sender, toMade } from '../sender.ts'
import { needsOf, type TokenSource, withToken } from '../token.ts'

const target = 'linear'

/** The name and the query of what is asked (linear.app/developers/graphql). */
const operations = {
  commentCreate:
    'mutation ($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { id url } } }',
  comment: 'query ($id: String!) { comment(id: $id) { id url } }',
  viewer: 'query { viewer { id } }',
} as const

/** Comments on issues of Linear. Their id is chosen here: by it a repeat finds the comment of an earlier attempt. */
export const createLinear = (
  apiUrl = 'https://api.linear.app/graphql',
  token: TokenSource,
  messages: OwnMessages,
): Sender => {
  const ask = async (
    asking: Asking,
    name: keyof typeof operations,
    variables: object = {},
  ): Promise<TargetResponse> =>
    withToken(token, async (accessToken) => {
      // A personal key stands alone (linear.app/developers/graphql, "Authentication").
      const isKey = accessToken.startsWith('lin_api_')
      const response = await requestTarget(new URL(apiUrl), {
        target,
        headers: { authorization: isKey ? accessToken : `Bearer ${accessToken}` },
        json: { query: operations[name], variables },
        attempt: asking,
      })
      const failure = toFailure(response, name)
      if (failure) throw failure
      return response
    })

  return {
    isIdempotent: true,
    send: async (message, attempt) => {
      const { address: issueId, text: body } = message
      const id = toCommentId(message)
      // Its event may come before the response.
      messages.rememberComment(id)
      if (attempt.mayHaveArrived) {
        const { json } = await asReadOnly(ask(attempt, 'comment', { id }))
        if (textAt(json, 'data', 'comment', 'id') === id) return 'an earlier attempt had arrived'
      }
      const { json } = await ask(attempt, 'commentCreate', { input: { id, issueId, body } })
      const page = textAt(json, 'data', 'commentCreate', 'comment', 'url')
      return { made: toMade('comment', page, 'https://linear.app') }
    },
    needs: needsOf(token, ['write', 'comments:create', 'admin']),
    check: async (_, asking) => ask(asking, 'viewer'),
  }
}

/** The same for each attempt, in the form of UUID v4 that Linear takes. */
const toCommentId = ({ address, text, part, reply: { eventId } }: Message): string => {
  const hex = createHash('sha256')
    .update(JSON.stringify([eventId, address, part, text]))
    .digest('hex')
  const groups = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(hex) ?? []
  const [, first = '', second = '', third = '', fourth = '', last = ''] = groups
  return `${first}-${second}-4${third}-a${fourth}-${last}`
}

/** GraphQL says in the body what is wrong, with any status. */
const toFailure = (response: TargetResponse, name: keyof typeof operations): Error | undefined => {
  const { status, headers, json } = response
  const [error] = listAt(json, 'errors')
  const type = textAt(error, 'extensions', 'type')?.toLowerCase() ?? ''
  if (status === 401 || type === 'authentication error') return new TokenRefused()
  if (type === 'ratelimited') {
    const retryAfterMs = retryAfterIn(headers['retry-after'])
    return new DeliveryError('retryable', 'linear rate limit reached', { retryAfterMs })
  }
  if (status >= 500 || status === 429) return toStatusError(target, response)
  // What is not there is no fault of the question.
  if (error !== undefined && name === 'comment') return undefined
  if (error !== undefined) {
    const reason = /^[a-z ]{3,40}$/.test(type) ? type : 'an error'
    return new DeliveryError('permanent', `linear answered ${reason}`, {
      hint: hints[reason] ?? missing,
    })
  }
  const failure = toStatusError(target, response)
  if (failure) return failure
  return (textAt(json, 'data', name, 'id') ?? textAt(json, 'data', name, 'comment', 'id'))
    ? undefined
    : new DeliveryError('indeterminate', 'the response is not from Linear')
}

const missing = 'there is no such issue, or the token may not see it'
const hints: Readonly<Record<string, string>> = {
  forbidden: 'the token may not comment there: it needs the scope write or comments:create',
  'feature not accessible': 'the plan of the workspace does not have this',
}

/** The issue of an event. Throws `target-invalid`. */
export const findLinearIssue = (payload: unknown): string => {
  const isIssue = textAt(payload, 'type') === 'Issue'
  const found = [
    ...(isIssue ? [textAt(payload, 'data', 'identifier'), textAt(payload, 'data', 'id')] : []),
    textAt(payload, 'data', 'issue', 'identifier'),
    textAt(payload, 'data', 'issueId'),
    textAt(payload, 'agentSession', 'issue', 'identifier'),
    textAt(payload, 'notification', 'issue', 'identifier'),
  ].find((name) => name !== undefined && isAddress('linear', name))
  if (found !== undefined) return found
  throw new DoorwardError('target-invalid', 'this event of Linear is about no issue', {
    hint: 'name an issue: linear:ENG-7',
  })
}
