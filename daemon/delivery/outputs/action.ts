import type { OutputResult } from '../../../shared/api/api.ts'
import type { LinkHosts } from '../format/links.ts'
import { toGithubBody, toGitlabBody } from '../format/parts.ts'
import type { Message, Sent } from '../sender.ts'
import type { OutputAction } from '../../../shared/targets/outputs.ts'

/*
 * The senders of GitHub and GitLab have this in common: an action travels as the text of a message, so that it has
 * retries, progress and results as the parts of a long answer have.
 */

export const writeAction = (action: OutputAction): string => JSON.stringify(action)

const bodyFor = { 'github-outputs': toGithubBody, 'gitlab-outputs': toGitlabBody }

/** The text of a message, exactly as it is sent: harmless at its place, with the links of these hosts. */
export const toActionText = (
  action: OutputAction,
  kind: keyof typeof bodyFor,
  hosts: LinkHosts,
): string =>
  writeAction('body' in action ? { ...action, body: bodyFor[kind](action.body, hosts) } : action)

/** The action that `writeAction` has made. */
export const readAction = ({ text }: Message): OutputAction => JSON.parse(text) as OutputAction

/** Far from the parts of an answer, whose marks name their number too. */
const firstPart = 100

/** A comment as the target of comments takes it: it never replaces an earlier one. */
export const toCommentMessage = (message: Message, text: string): Message => ({
  ...message,
  text,
  part: firstPart + message.part,
  reply: { ...message.reply, updateKey: undefined },
})

/** An action that happened, and reasons why a part of it did not. */
export const did = (
  kind: OutputAction['kind'],
  sent: string | Sent | undefined,
  ...whys: readonly (string | false)[]
): Sent => ({
  ...(typeof sent === 'object' ? sent : { note: sent }),
  outputs: [{ kind, state: 'done' }, ...whys.flatMap((why) => drop(kind, why))],
})

/** An action that did not happen, and never will. */
export const dropped = (kind: OutputAction['kind'], why: string): Sent => ({
  outputs: drop(kind, why),
})

const drop = (kind: string, why: string | false): OutputResult[] =>
  why === false ? [] : [{ kind, state: 'dropped', why }]
