import type { EventRecord, TargetResult } from '../../shared/api/api.ts'
import {
  addressForm,
  isAddress,
  isOutputsKind,
  type SentKind,
} from '../../shared/targets/schema.ts'
import type { EventValue, HttpReads, HttpValues } from '../../shared/targets/http-templates.ts'
import {
  isAtSubject,
  type ReplyKind,
  replyKind,
  type Target,
  targetPaths,
} from '../../shared/targets/targets.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { formatPath, type Path } from '../../shared/paths.ts'
import { isFixed, type Template } from '../../shared/templates.ts'
import { findSubjectAddress } from '../delivery/outputs/subject.ts'
import type { ResolvedTarget } from '../delivery/sender.ts'
import { findGithubReply } from '../delivery/targets/github/github.ts'
import { findGitlabReply } from '../delivery/targets/gitlab/gitlab.ts'
import { findJiraIssue } from '../delivery/targets/jira.ts'
import { findLinearIssue } from '../delivery/targets/linear.ts'
import { findTelegramReply } from '../delivery/targets/telegram.ts'
import { findReplyAddress } from '../delivery/targets/slack-reply.ts'
import { textOfValue, valueAt } from '../util/payload-path.ts'
import type { EventScope } from './read-delivery.ts'

/**
 * Expands the templates of targets. A forbidden value makes only that target fail, later, with nothing written.
 * In a list those are left out whose value the event does not have, unless none is left.
 */
export const expandTargets = (
  targets: readonly Target[],
  scope: EventScope,
  isProven = true,
): ResolvedTarget[] => {
  const known = targets.filter((target) => !lacksValue(target, scope))
  return expandEach(known.length > 0 ? known : targets, scope, isProven)
}

const lacksValue = (target: Target, scope: EventScope): boolean =>
  ('address' in target &&
    isAtSubject(target) &&
    findSubjectAddress(target.kind, scope.event) === undefined) ||
  targetPaths(target).some((path) => {
    const value = valueAt(scope, path)
    return value === undefined || value === null || value === ''
  })

/**
 * The same of every target, also of those that are left out, with the reason. `isProven` is false for an event that
 * anyone may have sent: it chooses no place for requests.
 */
export const expandEach = (
  targets: readonly Target[],
  scope: EventScope,
  isProven = true,
): ResolvedTarget[] =>
  targets.flatMap((target): ResolvedTarget[] => {
    switch (target.kind) {
      case 'none':
        return []
      case 'log':
      case 'notify':
        return [{ text: target.text, kind: target.kind }]
      case 'file':
        return [
          orInvalid(target.text, () => {
            const path = expandFileName(target.path, scope)
            return { text: `file:${path}`, kind: 'file', path }
          }),
        ]
      default:
        return [
          orInvalid(target.text, () => {
            const { kind, reads } = target
            const answers = replyKind(target)
            if (answers) {
              const address = findReply[answers](scope.event)
              // The address of Slack may be a secret.
              const shown = answers === 'github' || answers === 'gitlab' ? address : 'reply'
              return { text: `${kind}:${shown}`, kind, address }
            }
            if (isAtSubject(target)) return atSubject(kind, scope, isProven)
            const address = expandAddress(kind, target.address, scope)
            const values = reads && { values: readValues(reads, scope) }
            return { text: `${kind}:${address}`, kind, address, ...values }
          }),
        ]
    }
  })

/** Throws `target-invalid` for an event that is about nothing of this kind. */
const atSubject = (kind: SentKind, { event }: EventScope, isProven: boolean): ResolvedTarget => {
  if (!isProven)
    throw new DoorwardError('target-invalid', 'an event without a signature has no outputs', {
      hint: 'set secret_env at the webhook, and the same secret at the sender',
    })
  const address = findSubjectAddress(kind, event)
  if (address !== undefined)
    return { text: `${isOutputsKind(kind) ? 'outputs' : kind}:${address}`, kind, address }
  throw new DoorwardError(
    'target-invalid',
    `this event is about nothing that ${kind} of outputs could be for`,
    { hint: `it would be ${addressForm(kind)}` },
  )
}

const findReply: Readonly<Record<ReplyKind, (event: unknown) => string>> = {
  github: findGithubReply,
  gitlab: findGitlabReply,
  slack: findReplyAddress,
  telegram: findTelegramReply,
  jira: findJiraIssue,
  linear: findLinearIssue,
}

const maxValueLength = 4000

/** Throws `target-invalid`, without the value, for one that is no segment of a path. */
const readValues = ({ segments, body }: HttpReads, scope: EventScope): HttpValues => ({
  segments: segments.map((path) => namePart(path, scope, 'the URL')),
  body: body.map((path) => [path.slice(1).map(String), toValue(valueAt(scope, path))] as const),
})

/** A single value, cut like one in a prompt; null for all else. */
const toValue = (value: unknown): EventValue => {
  if (typeof value === 'string') return value.slice(0, maxValueLength)
  return typeof value === 'number' || typeof value === 'boolean' ? value : null
}

const orInvalid = (text: string, make: () => ResolvedTarget): ResolvedTarget => {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    return { text, kind: 'invalid', error }
  }
}

/**
 * The name of a remote target, checked with the strict grammar of its kind after the payload's values were
 * inserted. Throws `target-invalid`, without the value.
 */
export const expandAddress = (kind: SentKind, template: Template, scope: EventScope): string => {
  // Checked when the configuration was loaded.
  if (isFixed(template)) return template.source
  const address = template.parts
    .map((part) => (typeof part === 'string' ? part : addressPart(kind, part, scope)))
    .join('')
  if (isAddress(kind, address)) return address
  throw new DoorwardError(
    'target-invalid',
    `the values of this event do not make a target of ${kind}`,
    { hint: `it has to be ${addressForm(kind)}` },
  )
}

const addressPart = (kind: SentKind, path: Path, scope: EventScope): string => {
  const value = valueAt(scope, path)
  const isPlain = typeof value === 'string' || typeof value === 'number'
  // Only the owner may put a thread behind a channel.
  const leavesPart = kind === 'slack' && String(value).includes('/')
  if (isPlain && value !== '' && !leavesPart) return String(value)
  const fault = leavesPart ? 'has a slash' : isPlain ? 'is empty' : 'is no text'
  throw new DoorwardError(
    'target-invalid',
    `${toPlaceholder(path)}, a part of a target of ${kind}, ${fault} in this event`,
  )
}

const toPlaceholder = (path: Path): string => `{{${formatPath(path)}}}`

const maxNameLength = 200

/**
 * A path in which each value from the payload is a plain part of a file name. Throws
 * `target-invalid`, without the value, for an empty one and for one that could lead elsewhere.
 */
export const expandFileName = (template: Template, scope: EventScope): string => {
  const path = template.parts
    .map((part) => (typeof part === 'string' ? part : namePart(part, scope)))
    .join('')
  // Harmless parts must not combine to a harmful one: `.` and `.` to `..`.
  const literal = template.parts.map((part) => (typeof part === 'string' ? part : 'x')).join('')
  const dots = (text: string) => text.split(/[/\\]/).filter((name) => /^\.{1,2}$/.test(name)).length
  // A value must not become the name of a home folder, a Windows drive or a stream.
  const begins = (text: string) => /^(~[/\\]|[a-z]:)/i.exec(text)?.[0] ?? ''
  if (dots(path) !== dots(literal) || begins(path) !== begins(literal))
    throw invalid(template.source, 'leads out of its folder')
  return path
}

const namePart = (path: Path, scope: EventScope, whole = 'the file name'): string => {
  const given = valueAt(scope, path)
  const refuse = (reason: string) => invalid(toPlaceholder(path), reason, whole)
  if (typeof given === 'object' && given !== null) throw refuse('is no text in this event')
  const value = textOfValue(given)
  if (value.trim() === '') throw refuse('is empty in this event')
  if (value.length > maxNameLength) throw refuse(`is longer than ${maxNameLength} characters`)
  if (/[/\\]/.test(value)) throw refuse('has a slash in this event')
  if (value.includes('..') || value === '.') throw refuse('has dots that lead elsewhere')
  // Also direction characters: they show `fdp.exe` as `exe.pdf`.
  if (/[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]/u.test(value))
    throw refuse('has control characters')
  return value
}

const invalid = (name: string, reason: string, whole = 'the file name') =>
  new DoorwardError('target-invalid', `${whole} cannot be made: ${name} ${reason}`)

/** True when no target can be used, which is known before the agent runs. */
export const hasNoWayOut = ({
  targets,
}: {
  readonly targets: readonly ResolvedTarget[]
}): boolean => targets.length > 0 && targets.every(({ kind }) => kind === 'invalid')

/** The initial results for these targets. */
export const waitingFor = (
  targets: readonly ResolvedTarget[],
): Pick<EventRecord, 'target' | 'targets'> => ({
  target: targets.length > 0 ? targets.map(({ text }) => text).join(', ') : undefined,
  targets: targets.map(({ text }) => ({ target: text, state: 'waiting', attempts: 0 })),
})

/** The results before a retry: done targets stay done, and earlier attempts count. */
export const waitingAgain = (results: readonly TargetResult[]): TargetResult[] =>
  results.map((result) => {
    const { target, state, attempts } = result
    return state === 'done' ? result : { target, state: 'waiting', attempts }
  })

/** The indexes of the targets that do not have the answer yet. */
export const openPlaces = (results: readonly TargetResult[]): number[] =>
  results.flatMap(({ state }, place) => (state === 'done' ? [] : [place]))

/** Replaces one result; its attempts are added to the earlier ones. */
export const withResult = (
  results: readonly TargetResult[],
  earlier: readonly TargetResult[],
  place: number,
  result: TargetResult,
): TargetResult[] =>
  results.with(place, {
    ...result,
    attempts: (earlier[place]?.attempts ?? 0) + result.attempts,
  })

/** The final state of an event with these results: `done`, or `failed` with the first reason. */
export const deliveredEnd = (
  targets: TargetResult[],
): Pick<EventRecord, 'targets' | 'state' | 'stage' | 'code' | 'detail'> => {
  const failed = targets.find(({ state }) => state === 'failed')
  if (!failed) return { state: 'done', targets }
  const { target, code = 'delivery-failed', detail: reason = 'not delivered' } = failed
  return { state: 'failed', stage: 'deliver', code, detail: `${target}: ${reason}`, targets }
}
