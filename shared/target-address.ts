/*
 * The names that a target may have, each by its own strict grammar: what stands in the configuration is
 * held to it when it is loaded, and what an event has put into it once more before anything is sent.
 */

/** The kinds of target that leave this machine. */
export const sentKinds = ['slack', 'telegram', 'discord', 'email', 'github', 'http'] as const
export type SentKind = (typeof sentKinds)[number]

/** How a target of this kind is written, for messages. */
export const addressForms: Readonly<Record<SentKind, string>> = {
  slack: 'slack:#channel, slack:@user or slack:<id>',
  telegram: 'telegram:<chat id>, telegram:@channel or telegram:@me',
  discord: 'discord:<name>, a name of targets.discord',
  email: 'email:<address>, one address',
  github: 'github:<owner>/<repo>#<number>',
  http: 'http:<name>, a name of targets.http',
}

/** What may name an entry of `targets.discord` and `targets.http`. */
export const entryName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

const slackName = /^[#@](?=[^.-])[\p{L}\p{M}\p{N}._-]{1,80}$/u
// Channel, private group, direct message, user, of an enterprise too; Slack promises no length.
const slackId = /^@?[CDGUW][A-Z0-9]{2,20}$/
const telegramChat = /^(-?[1-9]\d{0,18}|@[A-Za-z][A-Za-z0-9_]{3,31})$/
const githubIssue =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}#)[A-Za-z0-9._-]{1,100}#[1-9]\d{0,9}$/
// RFC 5321 without quoted local parts, and without % ! and |, by which mail was once routed on.
const localPart = /^(?=.{1,64}$)[A-Za-z0-9#$&'*+/=?^_~-]+(\.[A-Za-z0-9#$&'*+/=?^_~-]+)*$/
const domainLabel = /^[\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u

/** True for one mail address and nothing else: no comma, name, quote, space or line break. */
export const isMailAddress = (text: string): boolean => {
  const at = text.lastIndexOf('@')
  const labels = text.slice(at + 1).split('.')
  return (
    at > 0 &&
    text.length <= 254 &&
    localPart.test(text.slice(0, at)) &&
    labels.every((label) => domainLabel.test(label))
  )
}

/** True for a chat of Telegram: its number, or the public name of a channel or group. */
export const isTelegramChat = (text: string): boolean => telegramChat.test(text)

/** True when this is how a target of this kind can be named. */
export const isAddress = (kind: SentKind, address: string): boolean => {
  switch (kind) {
    case 'slack':
      return slackId.test(address) || slackName.test(address)
    case 'telegram':
      return isTelegramChat(address)
    case 'email':
      return isMailAddress(address)
    case 'github':
      return githubIssue.test(address)
    case 'discord':
    case 'http':
      return entryName.test(address)
  }
}
