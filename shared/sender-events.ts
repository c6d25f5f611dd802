import { findNearest } from './text.ts'

/*
 * The events of senders, as `on` names them, to find misspelt ones. Senders add events, so one that is
 * missing here is only warned about.
 */

/** The events of GitHub with their actions (docs: "Webhook events and payloads"). */
const github: Readonly<Record<string, string>> = {
  branch_protection_configuration: 'disabled enabled',
  branch_protection_rule: 'created deleted edited',
  check_run: 'completed created requested_action rerequested',
  check_suite: 'completed requested rerequested',
  code_scanning_alert: 'appeared_in_branch closed_by_user created fixed reopened reopened_by_user',
  commit_comment: 'created',
  create: '',
  custom_property: 'created deleted promote_to_enterprise updated',
  custom_property_values: 'updated',
  delete: '',
  dependabot_alert: 'auto_dismissed auto_reopened created dismissed fixed reintroduced reopened',
  deploy_key: 'created deleted',
  deployment: 'created',
  deployment_protection_rule: 'requested',
  deployment_review: 'approved rejected requested',
  deployment_status: 'created',
  discussion:
    'answered category_changed created deleted edited labeled locked pinned transferred unanswered unlabeled unlocked unpinned',
  discussion_comment: 'created deleted edited',
  fork: '',
  github_app_authorization: 'revoked',
  gollum: '',
  installation: 'created deleted new_permissions_accepted suspend unsuspend',
  installation_repositories: 'added removed',
  installation_target: 'renamed',
  issue_comment: 'created deleted edited',
  issue_dependencies: 'blocked_by_added blocked_by_removed blocking_added blocking_removed',
  issues:
    'assigned closed deleted demilestoned edited field_added field_removed labeled locked milestoned opened pinned reopened transferred typed unassigned unlabeled unlocked unpinned untyped',
  label: 'created deleted edited',
  marketplace_purchase: 'cancelled changed pending_change pending_change_cancelled purchased',
  member: 'added edited removed',
  membership: 'added removed',
  merge_group: 'checks_requested destroyed',
  meta: 'deleted',
  milestone: 'closed created deleted edited opened',
  org_block: 'blocked unblocked',
  organization: 'deleted member_added member_invited member_removed renamed',
  package: 'published updated',
  page_build: '',
  personal_access_token_request: 'approved cancelled created denied',
  ping: '',
  project: 'closed created deleted edited reopened',
  project_card: 'converted created deleted edited moved',
  project_column: 'created deleted edited moved',
  projects_v2: 'closed created deleted edited reopened',
  projects_v2_item: 'archived converted created deleted edited reordered restored',
  projects_v2_status_update: 'created deleted edited',
  public: '',
  pull_request:
    'assigned auto_merge_disabled auto_merge_enabled closed converted_to_draft demilestoned dequeued edited enqueued labeled locked milestoned opened ready_for_review reopened review_request_removed review_requested synchronize unassigned unlabeled unlocked',
  pull_request_review: 'dismissed edited submitted',
  pull_request_review_comment: 'created deleted edited',
  pull_request_review_thread: 'resolved unresolved',
  push: '',
  registry_package: 'published updated',
  release: 'created deleted edited prereleased published released unpublished',
  repository:
    'archived created deleted edited privatized publicized renamed transferred unarchived',
  repository_advisory: 'published reported',
  repository_dispatch: '',
  repository_import: '',
  repository_ruleset: 'created deleted edited',
  repository_vulnerability_alert: 'create dismiss resolve',
  secret_scanning_alert: 'assigned created publicly_leaked reopened resolved unassigned validated',
  secret_scanning_alert_location: 'created',
  secret_scanning_scan: 'completed',
  security_advisory: 'performed published updated withdrawn',
  security_and_analysis: '',
  sponsorship: 'cancelled created edited pending_cancellation pending_tier_change tier_changed',
  star: 'created deleted',
  status: '',
  sub_issues: 'parent_issue_added parent_issue_removed sub_issue_added sub_issue_removed',
  team: 'added_to_repository created deleted edited removed_from_repository',
  team_add: '',
  watch: 'started',
  workflow_dispatch: '',
  workflow_job: 'completed in_progress queued waiting',
  workflow_run: 'completed in_progress requested',
}

const words = (text: string): string[] => text.split(' ')

/** By name of the signature scheme. */
export const senderEvents: Readonly<Record<string, readonly string[]>> = {
  github: Object.entries(github).flatMap(([event, actions]) =>
    actions === '' ? [event] : words(actions).map((action) => `${event}.${action}`),
  ),
  // https://docs.gitlab.com/user/project/integrations/webhook_events/
  gitlab: words(
    'access_token build deployment emoji feature_flag issue member merge_request milestone note pipeline project push release resource_access_token subgroup tag_push vulnerability wiki_page work_item',
  ),
  // https://linear.app/developers/webhooks
  linear: words(
    'AgentSessionEvent AppUserNotification Attachment AuditEntry Comment Customer CustomerNeed Cycle Document Initiative InitiativeUpdate Issue IssueAttachment IssueLabel IssueRelation IssueSLA OAuthApp PermissionChange Project ProjectLabel ProjectUpdate Reaction Team User',
  ),
  // https://docs.sentry.io/organization/integrations/integration-platform/webhooks/
  sentry: words('comment error event_alert installation issue metric_alert preprod_artifact seer'),
}

/** A name that a sender does not send, and the known one that is meant. */
export type UnknownEvent = { readonly meant: string | undefined }

/** Looks a name of `on` up. An unknown action of a known event is taken as new, unless it resembles another. */
export const findUnknownEvent = (scheme: string, name: string): UnknownEvent | undefined => {
  const known = senderEvents[scheme]
  const written = name.replace(/\.\*$/, '')
  if (!known || known.some((one) => one === written || one.startsWith(`${written}.`)))
    return undefined
  const [event = ''] = written.split('.')
  const isKnown = known.some((one) => one === event || one.startsWith(`${event}.`))
  if (isKnown) {
    const meant = findNearest(written, known, 2)
    return meant === undefined ? undefined : { meant }
  }
  const nearest = findNearest(event, [...new Set(known.map(toEvent))])
  return { meant: nearest && nearest + written.slice(event.length) }
}

const toEvent = (name: string): string => name.split('.')[0] ?? name
