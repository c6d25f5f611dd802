import { briefPrompts } from './brief-prompts.ts'
import { listPrompts } from './list-prompts.ts'

/*
 * The prompts of `webhook add`: each picks the fields of the events that it is for, and says what it leaves
 * out. `on` accepts those events only, so that no other one runs an agent with empty fields.
 */

type PresetPrompt = {
  /** The events that the prompt is for; undefined means all. */
  readonly on?: readonly string[]
  readonly prompt: string
}

/** For a sender whose events are not known. */
export const anyEvent = (title: string): PresetPrompt => ({
  prompt: `This came from ${title}. Say in two sentences what happened, and whether someone has to act.

{{event}}
`,
})

const pullRequest = `Pull request #{{event.number}} in {{event.repository.full_name}}: {{event.pull_request.title}}
Author: {{event.pull_request.user.login}}

{{event.pull_request.body}}

Say in three sentences what a reviewer should look at first.
`

const opened = ['pull_request.opened', 'pull_request.reopened']

const alerts = (title: string): string => `${title}: {{event.alerts.size}} alerts, {{event.status}}.
{% for alert in event.alerts limit: 20 %}
- {{alert.status}} since {{alert.startsAt}}: {{alert.labels.alertname}} {{alert.labels.severity}}
  {{alert.annotations.summary | default: alert.annotations.description}}
{%- endfor %}
{%- if event.alerts.size > 20 %}
{{event.alerts.size | minus: 20}} more are left out here.
{%- endif %}

Say in three sentences what is wrong, whether the alerts have one cause, and what to look at first.
`

const gitlab = `{% case event.object_kind -%}
{% when "push" -%}
{{event.user_name}} pushed {{event.total_commits_count}} commits to {{event.ref}} of {{event.project.path_with_namespace}}:
{% for commit in event.commits %}
- {{commit.id | slice: 0, 8}} {{commit.title}} ({{commit.author.name}})
{%- endfor %}
{%- if event.total_commits_count > event.commits.size %}
{{event.total_commits_count | minus: event.commits.size}} more are left out here.
{%- endif %}
{%- when "pipeline" -%}
Pipeline {{event.object_attributes.id}} on {{event.object_attributes.ref}} of {{event.project.path_with_namespace}}: {{event.object_attributes.status}}
{% for build in event.builds limit: 30 %}
- {{build.stage}} {{build.name}}: {{build.status}} {{build.failure_reason}}
{%- endfor %}
{%- if event.builds.size > 30 %}
{{event.builds.size | minus: 30}} more jobs are left out here.
{%- endif %}
{%- else -%}
{{event.user.name}}, {{event.object_kind}} {{event.object_attributes.action}} in {{event.project.path_with_namespace}}
{{event.object_attributes.title | default: event.merge_request.title | default: event.issue.title}}
{{event.object_attributes.url}}

{{event.object_attributes.description | default: event.object_attributes.note}}
{%- endcase %}

Say in two sentences what happened, and whether someone has to act.
`

const stripe = `Stripe says {{event.type}}{% unless event.livemode %} (test mode){% endunless %}.
{% assign it = event.data.object %}
{{it.object}} {{it.number | default: it.id}}, status {{it.status | default: it.payment_status}}
Amount: {{it.amount_due | default: it.amount_total | default: it.amount}} {{it.currency}}, in its smallest unit
Customer: {{it.customer_name | default: it.customer_details.name | default: it.billing_details.name}} {{it.customer_email | default: it.customer_details.email | default: it.billing_details.email}}
{{it.description}} {{it.reason}} {{it.failure_message | default: it.last_payment_error.message}}
{%- for line in it.lines.data limit: 10 %}
- {{line.quantity}} x {{line.description}}: {{line.amount}}
{%- endfor %}
{%- if it.lines.data.size > 10 or it.lines.has_more %}
More lines are left out here.
{%- endif %}

Say in one sentence what happened, and whether someone has to act.
`

const slack = `Someone wrote this to you in Slack:

{{event.event.text}}

Answer in a few sentences.
`

const shopify = `Shopify says {{headers.x-shopify-topic}}: order {{event.name}}, {{event.total_price}} {{event.currency}}
Payment: {{event.financial_status}}. Delivery: {{event.fulfillment_status | default: "not yet"}}.
Customer: {{event.customer.first_name}} {{event.customer.last_name}}
Note: {{event.note}}
{% for item in event.line_items limit: 20 %}
- {{item.quantity}} x {{item.title}} {{item.variant_title}} ({{item.price}})
{%- endfor %}
{%- if event.line_items.size > 20 %}
{{event.line_items.size | minus: 20}} more items are left out here.
{%- endif %}

Say in two sentences what happened, and whether someone has to act.
`

const linear = `Linear: {{event.actor.name}}, {{event.action}} {{event.type}}
{{event.data.identifier | default: event.data.issue.identifier}} {{event.data.title | default: event.data.issue.title}}
{%- if event.type == "Issue" %}
State: {{event.data.state.name}}. Priority: {{event.data.priorityLabel}}. Assignee: {{event.data.assignee.name | default: "no one"}}.
Labels: {{event.data.labels | map: "name" | join: ", "}}
{%- endif %}
{{event.url}}

{{event.data.description | default: event.data.body}}

Say in two sentences what happened, and whether someone has to act.
`

const sentry = `{% assign it = event.data.issue | default: event.data.event | default: event.data.error -%}
Sentry: {{event.action}} {{it.shortId}} {{it.title | default: event.data.description_title}}
{%- if it.culprit %}
Where: {{it.culprit}} in {{it.project.slug | default: it.project}} ({{it.platform}}), level {{it.level}}
{%- endif %}
{%- if it.count %}
Seen {{it.count}} times by {{it.userCount}} users, first {{it.firstSeen}}
{%- endif %}
{%- if event.data.triggered_rule %}
Rule: {{event.data.triggered_rule}}
{%- endif %}
{{it.web_url | default: it.permalink | default: event.data.web_url}}
{{it.message | default: event.data.description_text}}
{%- for exception in it.exception.values limit: 3 %}
{{exception.type}}: {{exception.value}}
{%- assign frames = exception.stacktrace.frames | reverse %}
{%- for frame in frames limit: 10 %}
  at {{frame.function}} in {{frame.filename}}:{{frame.lineno}}
{%- endfor %}
{%- if frames.size > 10 %}
  {{frames.size | minus: 10}} outer frames are left out here.
{%- endif %}
{%- endfor %}

Say in three sentences what fails, the likely cause, and whether someone has to act.
`

const standardWebhooks = `Event {{event.type}} at {{event.timestamp}}.

{{event.data}}

Say in two sentences what happened, and whether someone has to act.
`

/** By name of the signature scheme; all others have `anyEvent`. */
export const presetPrompts: Readonly<Record<string, PresetPrompt>> = {
  ...briefPrompts,
  ...listPrompts,
  github: { on: opened, prompt: pullRequest },
  gitea: { on: opened, prompt: pullRequest },
  gitlab: { on: ['push', 'merge_request', 'issue', 'note', 'pipeline'], prompt: gitlab },
  stripe: {
    on: [
      'invoice.paid',
      'invoice.payment_failed',
      'charge.failed',
      'charge.dispute.created',
      'checkout.session.completed',
    ],
    prompt: stripe,
  },
  slack: { on: ['app_mention'], prompt: slack },
  shopify: { on: ['orders/create', 'orders/paid', 'orders/cancelled'], prompt: shopify },
  linear: { on: ['Issue', 'Comment'], prompt: linear },
  sentry: { on: ['issue', 'error', 'event_alert', 'metric_alert'], prompt: sentry },
  alertmanager: { prompt: alerts('Alertmanager') },
  grafana: { prompt: alerts('Grafana') },
  'standard-webhooks': { prompt: standardWebhooks },
  hmac: anyEvent('a sender'),
  token: anyEvent('a sender'),
}
