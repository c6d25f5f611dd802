import { toPlainLine } from '../../../shared/text.ts'
import {
  findNames,
  isRoleProvider,
  type Role,
  type RoleProvider,
  usualWho,
} from '../../../shared/config/who.ts'
import { textAt, textOfValue, valueAt } from '../../util/payload-path.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import type { ReadDelivery } from '../read-delivery.ts'
import { getEventNames } from './choose.ts'

/*
 * Who started an event, and what that person has to be for the rule to run. The sender is asked for the role when
 * the event runs.
 */

export type RoleRequest = {
  readonly provider: RoleProvider
  readonly repository: string
  readonly person: string
  /** GitLab asks for members by their number. */
  readonly personId: number | undefined
  readonly atLeast: Role
  /** The login of the rule; undefined for that of the target. */
  readonly login: string | undefined
}

/** What an event asks before its agent runs: a role, or nothing where the payload says why it may not. */
export type WhoRequest = RoleRequest | { readonly refused: string }

type Asked = Pick<ReadDelivery, 'headers' | 'payload'> & {
  readonly webhook: Pick<ReadDelivery['webhook'], 'scheme' | 'source'>
}

/** Undefined where everyone may start it, or who did is in the list. */
export const toWhoRequest = (
  rule: Pick<CompiledRule, 'who' | 'allowedBots' | 'workspace' | 'mention'>,
  { webhook: { scheme, source }, headers, payload }: Asked,
): WhoRequest | undefined => {
  const { name: provider } = scheme
  const who = rule.who ?? usualWho(provider, getEventNames(scheme, headers, payload))
  if (who === 'anyone' && rule.mention === undefined) return undefined
  const { places = [], isName = false } = findNames(provider) ?? {}
  const toName = (text: string) => (isName ? text.toLowerCase() : text)
  const person = places
    .map((place) => textOfValue(valueAt(payload, place)))
    .find((text) => /^\S{1,100}$/.test(text))
  if (person === undefined)
    return who === 'anyone' ? undefined : { refused: 'the event does not say who started it' }
  const isIn = (list: readonly string[]) => list.some((one) => toName(one) === toName(person))
  const shown = toPlainLine(person)
  if (isBot(payload, person)) {
    const bots = rule.allowedBots?.flatMap((name) => [name, `${name}[bot]`]) ?? []
    return isIn(bots) ? undefined : { refused: `${shown} is a bot, and none of allowed_bots` }
  }
  // Programs that answer each other's mentions would never end.
  if (who === 'anyone') return undefined
  if (typeof who !== 'string')
    return isIn(who) ? undefined : { refused: `${shown} is not one of who` }
  const repository =
    textAt(payload, 'repository', 'full_name') ?? textAt(payload, 'project', 'path_with_namespace')
  if (repository === undefined || !isRoleProvider(provider))
    return { refused: `the event names no repository in which ${shown} could have a role` }
  const id = valueAt(payload, ['user', 'id']) ?? valueAt(payload, ['user_id'])
  const login = source?.app === undefined ? rule.workspace?.login : `github@${source.app}`
  return {
    provider,
    repository,
    person,
    personId: typeof id === 'number' && Number.isSafeInteger(id) ? id : undefined,
    atLeast: who,
    login,
  }
}

/** Programs at GitHub, Gitea and Slack, in Telegram, and of access tokens at GitLab. */
const isBot = (payload: unknown, person: string): boolean =>
  textAt(payload, 'sender', 'type') === 'Bot' ||
  /\[bot\]$|^(?:project|group)_\d+_bot(?:_|\d*$)/.test(person) ||
  textAt(payload, 'event', 'bot_id') !== undefined ||
  textAt(payload, 'event', 'message', 'bot_id') !== undefined ||
  ['edited_message', 'message', 'callback_query'].some(
    (kind) => valueAt(payload, [kind, 'from', 'is_bot']) === true,
  )
