import { type IncomingMessage, request as httpRequest } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { type ProblemDocument, eventHeader } from '../shared/api.ts'
import { DoorwardError, type ErrorCode } from '../shared/errors.ts'

/** What the daemon answers to a webhook that it takes. */
export type PostedWebhook = { readonly id: string; readonly status: string }

/**
 * Posts a webhook as it stands, without the local API's token. Throws what it is refused with;
 * `hintIfUnknown` is what to do where there is no webhook.
 */
export const postWebhook = async (
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  hintIfUnknown = 'doorward webhook list shows what is served; a broken configuration is said by: doorward status',
): Promise<PostedWebhook> => {
  const response = await send(url, { ...headers, 'content-length': String(body.length) }, body)
  const text = (await buffer(response)).toString('utf8')
  const status = response.statusCode ?? 0
  if (status >= 200 && status < 300) return postedOf(response, text)
  throw refusal(status, text, status === 404 ? hintIfUnknown : hints.get(status))
}

/** Where the body is for somebody else, as for Slack, id and status are in a header. */
const postedOf = ({ headers }: IncomingMessage, text: string): PostedWebhook => {
  const [, id, state] = /^(\S+) (\S+)$/.exec(String(headers[eventHeader] ?? '')) ?? []
  if (id !== undefined && state !== undefined) return { id, status: state }
  return JSON.parse(text) as PostedWebhook
}

const send = async (
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(url, { method: 'POST', headers }, resolve)
    request.setTimeout(30_000, () => request.destroy(new Error('no answer in time')))
    request.on('error', (error) =>
      reject(
        new DoorwardError('daemon-unreachable', `the daemon at ${url.origin} does not answer`, {
          cause: error,
          hint: 'doorward daemon status',
        }),
      ),
    )
    request.end(body)
  })

const inEvents = 'the reason is in: doorward events --limit 1'

const hints = new Map([
  [400, 'it was sent as it is: mend the payload, then send it again'],
  [401, inEvents],
  [413, inEvents],
  [429, 'rate_limit of the webhook in webhooks.yaml says how many are taken'],
  [503, 'doorward status shows what runs and waits'],
])

const refusal = (status: number, text: string, hint = 'doorward daemon logs'): DoorwardError => {
  let problem: Partial<ProblemDocument> = {}
  try {
    problem = JSON.parse(text) as Partial<ProblemDocument>
  } catch {
    // The daemon always answers JSON; another program need not.
  }
  return new DoorwardError(
    (problem.code ?? 'internal') as ErrorCode,
    `the webhook was refused with ${status}: ${problem.detail ?? 'no reason given'}`,
    { hint: problem.hint ?? hint },
  )
}
