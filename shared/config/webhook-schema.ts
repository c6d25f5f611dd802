import { z } from 'zod'
import { budgetSchema } from '../agents/budget.ts'
import { approveSchema } from '../approve/approve.ts'
import { pathFault } from '../errors.ts'
import { filterSchema } from '../filter/conditions.ts'
import { contextNames } from '../templates.ts'
import { describedFields } from './described-fields.ts'
import { outputsSchema } from '../targets/outputs.ts'
import { allowedKinds } from '../secret-kinds.ts'
import { senderFields } from './sender-fields.ts'
import { signatureFields } from './signature-fields.ts'
import { sessionFields } from '../agents/session.ts'
import { sourceSchema } from './source.ts'
import {
  contextSize,
  deliveryAge,
  environmentName,
  headerName,
  linkHosts,
  maxRuns,
  optionalDuration,
  rate,
} from './values.ts'
import { allowedBotsSchema, whoSchema } from './who.ts'
import { commitSchema, pullRequestSchema, workspaceSchema } from './workspace.ts'

/*
 * The schema of one entry of webhooks.yaml.
 */

const webhookPath = z
  .string()
  .regex(/^(\/[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9._~!$&'()*+,;=:@-]*)+\/?$/, {
    error: ({ input }) => `not a URL path: ${pathFault(String(input))}`,
  })

export const ruleName = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.-]{0,63}$/,
    'not the name of a rule (letters, digits, - _ and ., with a letter or a digit first)',
  )

const eventName = z.string().regex(/^\S+$/, 'not the name of an event')

/** Letters, digits, lines and full stops, with a letter or digit at both ends. */
const mentionForm = /^@[\p{L}\p{N}](?:[\p{L}\p{N}_.-]{0,98}[\p{L}\p{N}])?$/u

const glob = z.string().regex(/\S/, 'the glob is empty')
const globs = z.union([glob, z.array(glob).min(1)])

/** What runs for a delivery. */
export const ruleFields = {
  on: z
    .union([eventName, z.array(eventName).min(1)])
    .optional()
    .describe(
      'The events that run it, by the names of the sender: pull_request, pull_request.opened or invoice.*; a list means any. Default: all.',
    ),
  agent: z.string().optional().describe('Name of an agent in agents.yaml.'),
  prompt_template: z
    .string()
    .regex(/\S/, 'the prompt is empty')
    .optional()
    .describe(
      'The prompt; {{event.<path>}} is replaced by a value of the payload, {{headers.<name>}} by a header; with a tag or a filter it is Liquid.',
    ),
  filter: filterSchema
    .optional()
    .describe(
      'Path to expected value, compared as text; all must match; a list means any, and a map holds tests such as glob. any and none are lists of filters.',
    ),
  paths: globs
    .optional()
    .describe(
      'Globs of which a changed file has to match one, as services/api/**: of a push, of the workspace with a base, or of a pull request by the API. Default: any file.',
    ),
  paths_ignore: globs
    .optional()
    .describe('Globs of changed files that do not count. Default: none.'),
  who: whoSchema
    .optional()
    .describe(
      'Who may start it: anyone, a role in the repository (read, triage, write, maintain, admin), or a list of names. Default: write for comments, labels and buttons of GitHub and GitLab, else anyone.',
    ),
  allowed_bots: allowedBotsSchema
    .optional()
    .describe('Bots that may start it, where who is not anyone. Default: none.'),
  mention: z
    .string()
    .regex(mentionForm, "not a name such as '@doorward', in quotes, as YAML reserves @")
    .transform((name) => name.slice(1).toLowerCase())
    .optional()
    .describe(
      'The name by which a comment, review or message has to speak to it, as "@doorward": of GitHub, GitLab, Slack and Telegram. Each comment runs it once. Default: none needed.',
    ),
  acknowledge: z
    .boolean()
    .optional()
    .describe(
      'Whether the comment or message that starts it gets 👀 until it has ended: at GitHub, Slack and Telegram. Default: true for comments at GitHub and with mention, else false.',
    ),
  check: z
    .boolean()
    .optional()
    .describe(
      'With true, the bot of source shows each event as a check of its commit, with a button to run it again. Default false.',
    ),
  workspace: workspaceSchema
    .optional()
    .describe('The code that the agent sees: a commit of a repository, checked out for each run.'),
  context: z
    .array(z.enum(contextNames))
    .min(1)
    .optional()
    .describe(
      'What {{context.<name>}} of the prompt can be, from the workspace: diff, files, commits, and from GitHub: failed-logs, comments, reviews. Default: nothing.',
    ),
  context_limit: contextSize
    .optional()
    .describe(
      'Maximum size of each context; what is over it is left out, and said. Default 200kb.',
    ),
  deliver_to: z
    .union([z.string(), z.array(z.string()).min(1)])
    .optional()
    .describe(
      'none, log, notify:desktop, file:<path>, slack:#channel, telegram:<chat>, telegram:<chat>/<topic>, discord:<name>, email:<address>, github:<owner>/<repo>#<number>, github-review:<owner>/<repo>#<N>, github-check:<owner>/<repo>@<sha>, pull-request:<owner>/<repo>, push:<owner>/<repo>#<number>, gitlab:<group>/<project>!<number>, gitlab-review:<group>/<project>!<number>, jira:<issue>, linear:<issue>, http:<name>, or reply, where the event came from; a list delivers to each. Default none.',
    ),
  outputs: outputsSchema
    .optional()
    .describe(
      'What an answer may request as JSON, at the issue or pull request of its event, at GitHub and GitLab: a map of labels, comment, issue, close, assign, review, check, pull-request and push. Default: nothing.',
    ),
  update: z
    .boolean()
    .optional()
    .describe(
      'With true, a comment by github: edits the earlier comment of the same rule there, and a message by slack: the one in the same thread or about the same subject, instead of adding one. Default false.',
    ),
  check_name: z
    .string()
    .regex(/^[\p{L}\p{N}][^\p{C}]{0,99}$/u, 'not a name of a check: at most 100 characters')
    .optional()
    .describe(
      'The name of the check that github-check: or check sets. Default doorward/<rule>, or doorward/<path> without a rule.',
    ),
  allow_files: globs
    .optional()
    .describe(
      'Globs of files that pull-request: and push: may change although they run or rule others: .github/, CODEOWNERS, hooks, submodules, links out of the repository, files over 1 MB. Default: none.',
    ),
  allowed_links: linkHosts.describe(
    "Hosts whose links and images stay in an answer at GitHub and GitLab, as docs.example.com or *.example.com, beside the server's own and those of gateway.yaml; others are kept as text. Default: none.",
  ),
  allow_workflows: z
    .boolean()
    .optional()
    .describe(
      'With true, the same as .github/workflows/** in allow_files: workflows run with the secrets of the repository. Default false.',
    ),
  allow_push: z
    .boolean()
    .optional()
    .describe(
      'With true, push: may push to any branch of a pull request but the default branch, not to doorward/… alone. Default false.',
    ),
  max_attempts: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'How often pull-request: pushes for one subject within 30 days, opening included; then a comment there asks a person. Default 2; with push: no limit.',
    ),
  allow_secrets: z
    .array(z.enum(allowedKinds))
    .min(1)
    .optional()
    .describe(
      'Kinds of secrets that its answers and changes may have, such as jwt: an answer with another one is not delivered. Default: none.',
    ),
  commit: commitSchema.optional().describe('Who makes the commit of pull-request: and push:.'),
  pull_request: pullRequestSchema.optional().describe('What pull-request: opens it with.'),
  dry_run: z
    .boolean()
    .optional()
    .describe(
      'With true, nothing is delivered: each event shows the exact text that its targets would get, and events deliver sends it after all. Default false.',
    ),
  approve: approveSchema
    .optional()
    .describe(
      'Whether you are asked before an answer leaves this machine: true, or a map of by, who, when and timeout. Default: as in gateway.yaml.',
    ),
  event_text: z
    .enum(['fenced', 'plain'])
    .optional()
    .describe(
      'fenced marks values of the payload as data; plain inserts them unchanged. Default fenced for language models, plain for echo, command and http.',
    ),
  max_value_length: z
    .int()
    .min(1)
    .max(1_000_000_000)
    .optional()
    .describe(
      'Maximum characters of one value; longer values are cut and marked. Default 4000 when fenced.',
    ),
  accept_risk: z
    .boolean()
    .optional()
    .describe('Silences the warning about a dangerous combination. Default false.'),
  title: z
    .string()
    .regex(/\S/, 'the title is empty')
    .optional()
    .describe(
      'What an event is called in lists, with placeholders. Default: what its sender calls it, as acme/shop#12 and the title of the pull request.',
    ),
  coalesce: z
    .strictObject({
      key: z
        .string()
        .regex(/\S/, 'the key is empty')
        .describe('What events have in common of which only the newest runs, with placeholders.'),
      quiet: optionalDuration('How long no newer event came before it runs. Default 0s.'),
      at_most: optionalDuration(
        'How long it waits for quiet at most. Default 5m, or quiet if that is longer.',
      ),
      running: z
        .enum(['finish', 'cancel'])
        .optional()
        .describe('Whether the agent of an older event finishes or is stopped. Default finish.'),
      order_by: z
        .string()
        .regex(/\{\{/, 'has no placeholder, so all events would be equally new')
        .optional()
        .describe(
          'A number or a time of the event that says which is newer, with placeholders. Default: updated_at at GitHub, GitLab and Gitea, else the order of arrival.',
        ),
      cancel_on: z
        .union([eventName, z.array(eventName).min(1)])
        .optional()
        .describe(
          'The events, named as in on, that end what waits or runs for their key; they do not run the rule.',
        ),
    })
    .optional()
    .describe(
      'Of several events with one key the newest runs: a map of key, and of quiet, at_most, running, order_by and cancel_on if you like. Default: each runs.',
    ),
  ...sessionFields,
  max_runs: maxRuns
    .optional()
    .describe(
      'How often it may run, as 50/day or 10/hour; events over it are passed over. Each rule has its own count. Default: no limit.',
    ),
  budget: budgetSchema
    .optional()
    .describe(
      'What its runs may cost: a map of run, day or month. Each rule has its own sum. Default: no limit.',
    ),
}

/** One of several rules of a webhook. */
export const ruleSchema = z.strictObject({
  name: ruleName.describe('Name of the rule, in events and messages.'),
  enabled: z.boolean().optional().describe('With false, the rule is paused. Default true.'),
  ...ruleFields,
})

export const webhookSchema = z
  .strictObject({
    path: webhookPath.describe(
      'URL path; a path that does not begin with /webhook/ is also served below it.',
    ),
    rules: z
      .array(ruleSchema)
      .optional()
      .describe(
        'Several rules for one address, each a map of a name and what runs; each that matches makes an event of its own. What a rule does not say, it takes from the webhook.',
      ),
    agent: ruleFields.agent.describe(
      'Name of an agent in agents.yaml; required, unless each rule has one.',
    ),
    prompt_template: ruleFields.prompt_template,
    on: ruleFields.on,
    secret_env: z
      .union([environmentName, z.array(environmentName).min(1)])
      .optional()
      .describe('Environment variable with the secret; a list while secrets are rotated.'),
    ...signatureFields,
    ...describedFields,
    timestamp_tolerance: deliveryAge
      .optional()
      .describe(
        'How far a signed time may be in the past or the future; at most 24h. Default: 5m, linear 1m.',
      ),
    late: deliveryAge
      .optional()
      .describe(
        'With linear, which sends again with the old time: how old a delivery may be that was never seen; 0s turns it off. Default 24h.',
      ),
    ...senderFields,
    source: sourceSchema
      .optional()
      .describe('The hook that delivers here, as webhook connect made it and wrote it down.'),
    filter: ruleFields.filter,
    paths: ruleFields.paths,
    paths_ignore: ruleFields.paths_ignore,
    who: ruleFields.who,
    allowed_bots: ruleFields.allowed_bots,
    mention: ruleFields.mention,
    acknowledge: ruleFields.acknowledge,
    check: ruleFields.check,
    workspace: ruleFields.workspace,
    context: ruleFields.context,
    context_limit: ruleFields.context_limit,
    deliver_to: ruleFields.deliver_to,
    outputs: ruleFields.outputs,
    update: ruleFields.update,
    check_name: ruleFields.check_name,
    allow_files: ruleFields.allow_files,
    allowed_links: ruleFields.allowed_links,
    allow_workflows: ruleFields.allow_workflows,
    allow_push: ruleFields.allow_push,
    max_attempts: ruleFields.max_attempts,
    allow_secrets: ruleFields.allow_secrets,
    commit: ruleFields.commit,
    pull_request: ruleFields.pull_request,
    dedupe: z
      .enum(['id', 'body', 'off'])
      .optional()
      .describe(
        'What identifies repeated deliveries: id (set by the sender), body (the same bytes), off. Default: id if the sender sets one.',
      ),
    delivery_id_header: headerName
      .optional()
      .describe('Header with the id of a delivery. Default: those of known senders.'),
    rate_limit: rate
      .optional()
      .describe(
        'Limit of accepted deliveries, as 10/s, 60/min or 1000/h; GitHub, GitLab and Sentry do not retry what exceeds it. Default: none.',
      ),
    dry_run: ruleFields.dry_run,
    approve: ruleFields.approve,
    event_text: ruleFields.event_text,
    max_value_length: ruleFields.max_value_length,
    title: ruleFields.title,
    coalesce: ruleFields.coalesce,
    session: ruleFields.session,
    session_ttl: ruleFields.session_ttl,
    session_limit: ruleFields.session_limit,
    max_runs: ruleFields.max_runs,
    budget: ruleFields.budget,
    accept_risk: ruleFields.accept_risk,
    enabled: z.boolean().default(true).describe('With false, this path answers 404. Default true.'),
  })
  .meta({
    // For editors; the messages of the check are in webhook.ts.
    anyOf: [{ required: ['agent', 'prompt_template'] }, { required: ['rules'] }],
  })

export type WebhookEntry = z.output<typeof webhookSchema>
/** The fields of an entry, or of one of its rules, that say what runs. */
export type RuleEntry = Pick<WebhookEntry, keyof typeof ruleFields>
