import type { TargetSettings } from '../../shared/config/schema.ts'
import type { SentKind } from '../../shared/config/targets.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { createDiscord } from './discord.ts'
import { createEmail } from './email.ts'
import { createGithub } from './github.ts'
import { createHttp } from './http.ts'
import type { CommentMarks } from './own-comment.ts'
import type { OwnMessages } from './own-message.ts'
import type { Sender } from './sender.ts'
import { createSlack } from './slack.ts'
import { createTelegram } from './telegram.ts'
import type { TokenSource } from './token.ts'

export type SenderParts = {
  /** `targets:` of gateway.yaml. */
  readonly targets: TargetSettings
  /** Where the variables are that it names. */
  readonly env: NodeJS.ProcessEnv
  /** Fresh tokens of logins. */
  readonly access: OAuth['access']
  readonly marks: CommentMarks
  readonly messages: OwnMessages
}

/** Every target that leaves the machine, by its kind. */
export const createSenders = ({
  targets,
  env,
  access,
  marks,
  messages,
}: SenderParts): Readonly<Record<SentKind, Sender>> => {
  const { slack, telegram, discord, email, github, http } = targets
  const token = (
    target: string,
    tokenEnv: string | undefined,
    provider: string | undefined,
  ): TokenSource => ({ target, tokenEnv, provider, env, access })
  return {
    slack: createSlack(slack.api_url, token('slack', slack.token_env, 'slack'), messages),
    telegram: createTelegram(telegram, token('telegram', telegram.token_env, undefined)),
    discord: createDiscord(discord, env),
    email: createEmail(email, env, token('email', undefined, 'google')),
    github: createGithub(github.api_url, token('github', github.token_env, 'github'), marks),
    http: createHttp(http, env),
  }
}
