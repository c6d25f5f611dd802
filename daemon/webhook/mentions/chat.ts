import { listAt, textAt, valueAt } from '../../util/payload-path.ts'
import { isNamedAt } from './name.ts'

/*
 * Whether a message of a chat names somebody, in prose: not in code, quotes or addresses.
 */

/** Whom the angle brackets of a text of Slack may name. */
export type SlackUsers =
  /** The users of the app that gets the event. */
  | readonly string[]
  /** Any: an event of the kind `app_mention` comes only where a message names the app. */
  | 'any'

/**
 * A text of Slack, whose marks are escaped (docs.slack.dev, "Formatting message text"): `<@U…>` is a mention, a
 * line after `&gt;` is a quote, and after `&gt;&gt;&gt;` all that follows.
 */
export const namesInSlack = (text: string, name: string, users: SlackUsers): boolean => {
  const prose = text
    .replaceAll(/```[^]*?(?:```|$)|`[^`\n]*`/g, ' ')
    .replace(/^&gt;&gt;&gt;[^]*/m, ' ')
    .replaceAll(/^&gt;.*/gm, ' ')
  const named = [...prose.matchAll(/<@([A-Z0-9]{2,20})(?:\|[^<>]*)?>/g)]
  if (named.some(([, user = '']) => users === 'any' || users.includes(user))) return true
  return namesInPlain(prose.replaceAll(/<[^<>]*>/g, ' '), name)
}

/** The users of the app in an event of Slack (docs.slack.dev/apis/events-api, `authorizations`). */
export const findSlackUsers = (payload: unknown): SlackUsers => {
  const users = listAt(payload, 'authorizations').flatMap((one) => textAt(one, 'user_id') ?? [])
  if (users.length > 0) return users
  return textAt(payload, 'event', 'type') === 'app_mention' ? 'any' : []
}

/** Entities of Telegram in which a name is no mention. */
const silent = ['code', 'pre', 'blockquote', 'expandable_blockquote', 'url', 'email', 'text_link']

/** A message of Telegram, whose entities say what is code, a quote or a mention (core.telegram.org/bots/api#messageentity). */
export const namesInTelegram = (message: unknown, name: string): boolean => {
  const isCaption = textAt(message, 'text') === undefined
  const text = textAt(message, isCaption ? 'caption' : 'text') ?? ''
  const entities = listAt(message, isCaption ? 'caption_entities' : 'entities').map((entity) => ({
    type: textAt(entity, 'type') ?? '',
    user: textAt(entity, 'user', 'username'),
    ...rangeOf(entity),
  }))
  const covered = entities.filter(({ type }) => silent.includes(type))
  const isCovered = (place: number) =>
    covered.some(({ start, end }) => start <= place && place < end)
  return (
    entities.some(
      ({ type, user, start }) =>
        type === 'text_mention' && user?.toLowerCase() === name && !isCovered(start),
    ) || placesOf(text, name).some((place) => !isCovered(place))
  )
}

/** Counted in UTF-16 units, as in JavaScript. */
const rangeOf = (entity: unknown): { start: number; end: number } => {
  const [offset, length] = ['offset', 'length'].map((key) => valueAt(entity, [key]))
  const start = typeof offset === 'number' ? offset : 0
  return { start, end: start + (typeof length === 'number' ? length : 0) }
}

const namesInPlain = (text: string, name: string): boolean => placesOf(text, name).length > 0

const placesOf = (text: string, name: string): number[] =>
  [...text.matchAll(/@/g)].flatMap(({ index }) => {
    // A command of Telegram may name the bot that it is for: /ask@doorward.
    const command = /(?:^|\s)\/\w{1,32}$/.test(text.slice(Math.max(0, index - 40), index))
    return isNamedAt(command ? ` ${text.slice(index)}` : text, command ? 1 : index, name)
      ? [index]
      : []
  })
