import type { Gateway } from '../../../shared/config/schema.ts'
import type { OwnMessages } from '../../delivery/loop-guard.ts'
import { requestTarget, type TargetResponse } from '../../delivery/request.ts'
import { toChannel, toSlackFailure } from '../../delivery/targets/slack.ts'
import { toResponse } from '../../delivery/targets/slack-reply.ts'
import { withToken } from '../../delivery/token.ts'
import type { Tokens } from '../../oauth/dependencies.ts'
import { textAt } from '../../util/payload-path.ts'
import type { Chat, ChatApprovals, ChatButton } from '../../webhook/approvals/chat.ts'
import { ownAction, type SlackPress } from './envelope.ts'

/*
 * Approvals in Slack: a message with two buttons by the bot of `targets.slack`, presses by the socket of its app, and
 * the message without buttons afterwards.
 */

export type SlackChatParts = {
  readonly gateway: () => Gateway
  readonly env: () => NodeJS.ProcessEnv
  readonly access: Tokens['access']
  readonly messages: OwnMessages
  readonly approvals: ChatApprovals
  readonly signal: AbortSignal
}

const usualApi = 'https://slack.com/api'
const requestMs = 10_000

export const getSlackApi = ({ targets }: Gateway): string => targets.slack.api_url ?? usualApi

export class SlackChat implements Chat {
  readonly kind = 'slack'
  readonly #parts: SlackChatParts
  /** The workspace of the bot. */
  #team: string | undefined

  constructor(parts: SlackChatParts) {
    this.#parts = parts
  }

  /** docs.slack.dev/reference/methods/chat.postMessage */
  readonly ask: Chat['ask'] = async ({ address, text, buttons }) => {
    const { messages } = this.#parts
    const { json } = await messages.post(async () => {
      const posted = await this.#call('chat.postMessage', {
        channel: toChannel(address),
        ...toBlocks(text, buttons),
        unfurl_links: false,
        unfurl_media: false,
      })
      messages.remember(posted.json)
      return posted
    })
    return { channel: textAt(json, 'channel') ?? '', id: textAt(json, 'ts') ?? '' }
  }

  /** docs.slack.dev/reference/methods/chat.update */
  readonly update: Chat['update'] = async ({ channel, id }, text) => {
    await this.#call('chat.update', { channel, ts: id, ...toBlocks(text, []) })
  }

  /** Tells the person who pressed what became of it. */
  readonly pressed = async (press: SlackPress): Promise<void> => {
    const { approvals, signal } = this.#parts
    const { buttonId, userId, message, teamId, answerTo } = press
    const isOurs = teamId !== '' && teamId === (await this.#findTeam().catch(() => undefined))
    const said = isOurs
      ? await approvals.press({ kind: 'slack', buttonId, userId, message })
      : 'Only members of the workspace of this app may answer.'
    if (!answerTo) return
    await requestTarget(answerTo, {
      target: 'slack',
      json: toResponse(said),
      attempt: { signal, timeoutMs: requestMs },
    }).catch(() => undefined)
  }

  /** docs.slack.dev/reference/methods/auth.test */
  async #findTeam(): Promise<string | undefined> {
    this.#team ??= textAt((await this.#call('auth.test', {})).json, 'team_id')
    return this.#team
  }

  async #call(method: string, json: object): Promise<TargetResponse> {
    const { gateway, env, access, signal } = this.#parts
    const { token_env: tokenEnv, login } = gateway().targets.slack
    const source = { target: 'slack', tokenEnv, provider: login ?? 'slack', env: env(), access }
    return withToken(source, async (token) => {
      const response = await requestTarget(new URL(`${getSlackApi(gateway())}/${method}`), {
        target: 'slack',
        token,
        json,
        attempt: { signal, timeoutMs: requestMs },
      })
      const failure = toSlackFailure(response, '')
      if (failure) throw failure
      return response
    })
  }
}

/** The limit of a block (docs.slack.dev/reference/block-kit/blocks/markdown-block). */
const longestBlock = 12_000
const longestFallback = 3000

/** `text` is what notifications show. */
const toBlocks = (text: string, buttons: readonly ChatButton[]): object => ({
  text: text.slice(0, longestFallback),
  blocks: [
    { type: 'markdown', text: text.slice(0, longestBlock) },
    ...(buttons.length === 0
      ? []
      : [
          {
            type: 'actions',
            elements: buttons.map(({ label, style, id }, index) => ({
              type: 'button',
              action_id: `${ownAction}${index}`,
              text: { type: 'plain_text', text: label },
              value: id,
              style,
            })),
          },
        ]),
  ],
})
