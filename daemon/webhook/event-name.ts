import { DoorwardError } from '../../shared/errors.ts'
import { describedNames } from '../../shared/signatures/presets.ts'
import type { SignatureScheme } from '../../shared/signatures/scheme.ts'
import { toPlainLine } from '../../shared/text.ts'
import { BoundedMap } from '../util/collections.ts'
import { toDigest } from '../util/day-journal.ts'
import type { SeenDeliveries } from './dedupe.ts'
import type { SignatureHeaders } from './signatures/header.ts'

/*
 * GitHub and others name the event in a header that no signature covers. Whoever has captured a delivery could
 * send its bytes again as another event, which runs another rule.
 */

/** These names have a kind in front, and events of one kind can have the same body: `orders/create`, `orders/paid`. */
const hasKind = /^(?:x-event-key|(?:x-)?shopify-topic|x-wc-webhook-topic)$/
/** Two events of these senders never have the same body. */
const isExact =
  /^(?:x-(?:github|gitlab|gitea|forgejo|gogs)-event|x-(?:gitea|forgejo|gogs)-event-type|sentry-hook-resource)$/

/** True for a header that names the event, where the same bytes come under one name only. */
export const isEventHeader = (name: string): boolean => isExact.test(name) || hasKind.test(name)

/** True for the header that the owner of a webhook names, whose names may have a kind in front. */
export const isOwnEventHeader = (
  { name: scheme, event }: Pick<SignatureScheme, 'name' | 'event'>,
  name: string,
): boolean => event?.header === name && (describedNames as readonly string[]).includes(scheme)

/** What is looked at of a verified delivery. */
type NamedDelivery = {
  readonly webhook: {
    readonly path: string
    readonly scheme: { readonly name: string }
    readonly eventHeaders: readonly string[]
  }
  readonly headers: SignatureHeaders
  readonly body: { readonly mac: Buffer | undefined }
  readonly payload: unknown
}

/**
 * Refuses a signed delivery under another event name than its own. `names` remembers the name of each body, as
 * `SeenDeliveries` remembers events. Throws `event-mismatch`.
 */
export const checkEventName = (
  delivery: NamedDelivery,
  names: SeenDeliveries,
  nowMs: number,
): void => {
  requireBodyOfEvent(delivery)
  const { webhook, headers, body } = delivery
  const { mac } = body
  if (!mac || webhook.eventHeaders.length === 0) return
  const name = readName(webhook.eventHeaders, headers)
  // The MAC is at hand, and stands for the bytes and the secret.
  const key = { webhook: webhook.path, hash: mac.toString('latin1') }
  const before = names.eventFor(key, nowMs)
  // Before the last start: the name is text of the sender, so the disk has only its hash.
  const digest = digestOf(name)
  if (before !== undefined && before !== name && before !== digest)
    throw mismatch('these signed bytes came before as another event', {
      localDetail: `these signed bytes came before as ${show(before)}, and now as ${show(name)}: no signature covers ${webhook.eventHeaders.join(', ')}, so it was changed on the way`,
    })
  // Any sender that is not in the list above has no name.
  if (name === '') return
  names.remember(key, name, nowMs)
  if (before !== name && before !== digest) names.settle(key, digest)
}

const digests = new BoundedMap<string, string>(200)

/** A sender has few names, so each is hashed once. */
const digestOf = (name: string): string => {
  const known = digests.get(name)
  if (known !== undefined) return known
  const digest = toDigest(name)
  digests.set(name, digest)
  return digest
}

const readName = (eventHeaders: readonly string[], headers: SignatureHeaders): string => {
  let names = ''
  for (const header of eventHeaders) {
    const value = headers[header]?.join(',') ?? ''
    const name = isExact.test(header) ? value : value.replace(/[:/.].*/s, '')
    names = names === '' ? name : `${names} ${name}`
  }
  return names
}

const show = (name: string): string => {
  if (name === '') return 'an event without a name'
  return /^[\w-]{43}$/.test(name) ? 'another event' : toPlainLine(name).slice(0, 80)
}

const mismatch = (what: string, details: { hint?: string; localDetail?: string } = {}) =>
  new DoorwardError('event-mismatch', what, details)

/**
 * Members that a body of each event of GitHub has, and with `!` those that it never has: the shape of the
 * payloads at https://docs.github.com/en/webhooks/webhook-events-and-payloads. An event without members of its own is left out.
 */
const members: Readonly<Record<string, string>> = {
  branch_protection_rule: 'rule',
  check_run: 'check_run',
  check_suite: 'check_suite',
  code_scanning_alert: 'alert',
  commit_comment: 'comment !issue !pull_request !discussion',
  create: 'ref_type master_branch',
  delete: 'ref_type !master_branch',
  dependabot_alert: 'alert',
  deploy_key: 'key',
  deployment: 'deployment',
  deployment_review: 'since workflow_run',
  deployment_status: 'deployment_status',
  discussion: 'discussion !comment',
  discussion_comment: 'discussion comment',
  fork: 'forkee',
  gollum: 'pages',
  issue_comment: 'issue comment',
  issues: 'issue !comment',
  label: 'label',
  marketplace_purchase: 'marketplace_purchase',
  member: 'member',
  membership: 'member team',
  merge_group: 'merge_group',
  milestone: 'milestone',
  package: 'package',
  page_build: 'build',
  projects_v2_item: 'projects_v2_item',
  pull_request: 'pull_request !comment !review !thread',
  pull_request_review: 'pull_request review',
  pull_request_review_comment: 'pull_request comment',
  pull_request_review_thread: 'pull_request thread',
  push: 'ref commits',
  release: 'release',
  repository_dispatch: 'branch client_payload',
  secret_scanning_alert: 'alert',
  secret_scanning_alert_location: 'alert location',
  security_advisory: 'security_advisory',
  sponsorship: 'sponsorship',
  star: 'starred_at',
  status: 'sha state context',
  team: 'team',
  workflow_dispatch: 'workflow inputs',
  workflow_job: 'workflow_job',
  workflow_run: 'workflow_run',
}

type Member = { readonly name: string; readonly isThere: boolean }

const bodies: ReadonlyMap<string, readonly Member[]> = new Map(
  Object.entries(members).map(([event, words]) => [
    event,
    words
      .split(' ')
      .map((word) => ({ name: word.replace('!', ''), isThere: !word.startsWith('!') })),
  ]),
)

const githubHeader = 'x-github-event'

/** Throws `event-mismatch` where GitHub's header names an event whose body looks different. */
export const requireBodyOfEvent = ({
  webhook,
  headers,
  payload,
}: Pick<NamedDelivery, 'webhook' | 'headers' | 'payload'>): void => {
  if (webhook.scheme.name !== 'github') return
  const event = headers[githubHeader]?.join(',')
  if (event === undefined) return
  // `issues.opened` would be taken for an event with its action.
  if (!/^[a-z\d_]+$/.test(event)) throw mismatch(`${githubHeader} is no event of GitHub`)
  const wrong = bodies.get(event)?.find(({ name, isThere }) => has(payload, name) !== isThere)
  if (!wrong) return
  throw mismatch(
    `the body is none of the event ${event}: it has ${wrong.isThere ? 'no ' : ''}${wrong.name}`,
    { hint: `no signature covers ${githubHeader}: send the body with the name of its own event` },
  )
}

const has = (payload: unknown, name: string): boolean =>
  typeof payload === 'object' && payload !== null && Object.hasOwn(payload, name)
