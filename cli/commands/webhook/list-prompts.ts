/*
 * Prompts of senders whose events hold lists: each is told item by item, and what is left out is said.
 */

const ask = 'Say in two sentences what happened, and whether someone has to act.'

/** By name of the signature scheme. */
export const listPrompts = {
  bitbucket: {
    on: ['pullrequest:created', 'repo:push'],
    prompt: `{% if event.pullrequest -%}
Pull request #{{event.pullrequest.id}} in {{event.repository.full_name}}: {{event.pullrequest.title}}
Author: {{event.pullrequest.author.display_name}}

{{event.pullrequest.description}}
{%- else -%}
{{event.actor.display_name}} pushed to {{event.repository.full_name}}:
{%- for change in event.push.changes limit: 5 %}
{{change.new.name | default: change.old.name}}
{%- for commit in change.commits limit: 20 %}
- {{commit.hash | slice: 0, 8}} {{commit.message | truncate: 200}}
{%- endfor %}
{%- if change.truncated %}
More commits are not in this event.
{%- endif %}
{%- endfor %}
{%- if event.push.changes.size > 5 %}
{{event.push.changes.size | minus: 5}} more branches are left out here.
{%- endif %}
{%- endif %}

${ask}
`,
  },
  jira: {
    on: ['jira:issue_created', 'jira:issue_updated', 'comment_created'],
    prompt: `Jira says {{event.webhookEvent}}: {{event.issue.key}} {{event.issue.fields.summary}}
Status: {{event.issue.fields.status.name}}. Priority: {{event.issue.fields.priority.name}}. Assignee: {{event.issue.fields.assignee.displayName | default: "no one"}}.
{%- for item in event.changelog.items limit: 10 %}
{{item.field}}: {{item.fromString | truncate: 200}} -> {{item.toString | truncate: 200}}
{%- endfor %}
{%- if event.changelog.items.size > 10 %}
{{event.changelog.items.size | minus: 10}} more changes are left out here.
{%- endif %}

{{event.comment.body | default: event.issue.fields.description}}

${ask}
`,
  },
  meta: {
    prompt: `{{event.object}} sent this:
{%- for entry in event.entry limit: 5 %}
{%- for change in entry.changes limit: 10 %}
{%- for message in change.value.messages limit: 10 %}
From {{message.from}}: {{message.text.body | default: message.type}}
{%- else %}
{{change.field}}: {{change.value}}
{%- endfor %}
{%- endfor %}
{%- for message in entry.messaging limit: 10 %}
From {{message.sender.id}}: {{message.message.text}}
{%- endfor %}
{%- endfor %}

At most ten messages of each entry are shown. ${ask}
`,
  },
  typeform: {
    prompt: `An answer to the form "{{event.form_response.definition.title}}":
{%- for answer in event.form_response.answers limit: 40 %}
{%- assign field = event.form_response.definition.fields | where: "id", answer.field.id | first %}
- {{field.title | default: answer.field.ref}}: {{answer[answer.type].label | default: answer[answer.type].labels | default: answer[answer.type]}}
{%- endfor %}
{%- if event.form_response.answers.size > 40 %}
{{event.form_response.answers.size | minus: 40}} more answers are left out here.
{%- endif %}

${ask}
`,
  },
  calendly: {
    on: ['invitee.created', 'invitee.canceled'],
    prompt: `Calendly says {{event.event}}: {{event.payload.scheduled_event.name}}
{{event.payload.name}} <{{event.payload.email}}>, {{event.payload.scheduled_event.start_time}} to {{event.payload.scheduled_event.end_time}}
{%- for item in event.payload.questions_and_answers limit: 20 %}
- {{item.question}} {{item.answer}}
{%- endfor %}
{{event.payload.cancellation.reason}}

${ask}
`,
  },
  woocommerce: {
    on: ['order.created', 'order.updated'],
    prompt: `WooCommerce: order {{event.number | default: event.id}}, {{event.status}}, {{event.total}} {{event.currency}}
Customer: {{event.billing.first_name}} {{event.billing.last_name}}
Note: {{event.customer_note}}
{%- for item in event.line_items limit: 20 %}
- {{item.quantity}} x {{item.name}} ({{item.total}})
{%- endfor %}
{%- if event.line_items.size > 20 %}
{{event.line_items.size | minus: 20}} more items are left out here.
{%- endif %}

${ask}
`,
  },
  hubspot: {
    prompt: `HubSpot sent {{event | size}} changes:
{%- for change in event limit: 20 %}
- {{change.subscriptionType}} of {{change.objectId}}: {{change.propertyName}} {{change.propertyValue | truncate: 200}}
{%- endfor %}
{%- if event.size > 20 %}
{{event.size | minus: 20}} more are left out here.
{%- endif %}

${ask}
`,
  },
} as const
