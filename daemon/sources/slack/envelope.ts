import { parseResponseUrl } from '../../delivery/targets/slack-reply.ts'
import { listAt, textAt } from '../../util/payload-path.ts'
import type { FetchedDelivery } from '../../webhook/pipeline.ts'
import type { Envelope } from './socket.ts'

/** The prefix of `action_id` of our own buttons. */
export const ownAction = 'doorward-approval-'

/** A press of a button of ours. */
export type SlackPress = {
  readonly buttonId: string
  readonly userId: string
  readonly teamId: string
  readonly message: { readonly channel: string; readonly id: string }
  /** The address that answers the person who pressed; undefined unless it is at Slack. */
  readonly answerTo: URL | undefined
}

/**
 * The delivery of an envelope, as if Slack had posted it: events have the same body there, and slash commands and
 * buttons the same fields, which a form has there and JSON here. Events have an id of their own, others the one of
 * the press or command.
 */
export const toDelivery = ({ id, payload }: Envelope): FetchedDelivery => {
  const pressed = textAt(payload, 'trigger_id') ?? id
  return {
    rawHeaders: ['content-type', 'application/json'],
    bytes: Buffer.from(JSON.stringify(payload ?? null)),
    source: 'slack',
    ...(textAt(payload, 'event_id') === undefined && {
      deliveryId: /^[\x21-\x7e]{1,128}$/.test(pressed) ? pressed : id,
    }),
  }
}

/** Undefined for all but a button of ours (docs.slack.dev/reference/interaction-payloads/block_actions-payload). */
export const findPress = ({ type, payload }: Envelope, apiUrl: string): SlackPress | undefined => {
  if (type !== 'interactive' || textAt(payload, 'type') !== 'block_actions') return undefined
  const [action] = listAt(payload, 'actions')
  if (!textAt(action, 'action_id')?.startsWith(ownAction)) return undefined
  const answerTo = textAt(payload, 'response_url') ?? ''
  return {
    buttonId: textAt(action, 'value') ?? '',
    userId: textAt(payload, 'user', 'id') ?? '',
    teamId: textAt(payload, 'team', 'id') ?? '',
    message: {
      channel: textAt(payload, 'channel', 'id') ?? textAt(payload, 'container', 'channel_id') ?? '',
      id: textAt(payload, 'message', 'ts') ?? textAt(payload, 'container', 'message_ts') ?? '',
    },
    answerTo: URL.canParse(answerTo) ? parseResponseUrl(answerTo, apiUrl) : undefined,
  }
}
