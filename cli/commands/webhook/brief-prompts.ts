/*
 * Prompts of senders whose events are told in a few fields, for any of their events: a field that an event does
 * not have is empty.
 */

const ask = 'Say in two sentences what happened, and whether someone has to act.'

const brief = (...lines: readonly string[]) => ({ prompt: `${lines.join('\n')}\n\n${ask}\n` })

/** By name of the signature scheme. */
export const briefPrompts = {
  'azure-devops': brief(
    'Azure DevOps says {{event.eventType}}: {{event.message.text}}',
    '',
    '{{event.detailedMessage.text}}',
  ),
  pagerduty: brief(
    'PagerDuty says {{event.event.event_type}}: {{event.event.data.title}}',
    'Service: {{event.event.data.service.summary}}, urgency {{event.event.data.urgency}}, status {{event.event.data.status}}',
  ),
  vercel: brief(
    'Vercel says {{event.type}}: {{event.payload.name}} {{event.payload.target}}',
    '{{event.payload.url}} {{event.payload.deployment.url}}',
  ),
  circleci: brief(
    'CircleCI says {{event.type}} in {{event.project.name}}: {{event.workflow.name}} {{event.workflow.status}} {{event.job.name}} {{event.job.status}}',
    '{{event.pipeline.vcs.branch}}: {{event.pipeline.vcs.commit.subject}}',
  ),
  buildkite: brief(
    'Buildkite says {{event.event}}: {{event.pipeline.name}} #{{event.build.number}} {{event.build.state}} on {{event.build.branch}}',
    '{{event.build.message}}',
  ),
  terraform: brief(
    'Workspace {{event.workspace_name}} of {{event.organization_name}}: {{event.notifications[0].message}}',
    '{{event.run_message}}',
  ),
  discourse: brief(
    'Discourse says {{headers.x-discourse-event}}: {{event.topic.title}} {{event.post.topic_title}}',
    'By {{event.post.username}}:',
    '',
    '{{event.post.raw}}',
  ),
  cloudevents: brief(
    '{{event.type}} from {{event.source}} at {{event.time}}: {{event.subject}}',
    '',
    '{{event.data}}',
  ),
  zoom: brief(
    'Zoom says {{event.event}}: {{event.payload.object.topic}}',
    'Start: {{event.payload.object.start_time}}, {{event.payload.object.duration}} minutes',
  ),
  notion: brief(
    'Notion says {{event.type}} at {{event.timestamp}}: {{event.entity.type}} {{event.entity.id}}',
    '{{event.data}}',
  ),
  'cal-com': brief(
    'Cal.com says {{event.triggerEvent}}: {{event.payload.title}}',
    'From {{event.payload.startTime}} to {{event.payload.endTime}}',
    '{{event.payload.additionalNotes}}',
  ),
  dropbox: brief('Files of these Dropbox accounts changed: {{event.list_folder.accounts}}'),
  trello: brief(
    'Trello says {{event.action.type}} on {{event.action.data.board.name}}, by {{event.action.memberCreator.fullName}}',
    'Card: {{event.action.data.card.name}}',
    '{{event.action.data.text}}',
  ),
  asana: brief('Asana says:', '', '{{event.events}}'),
  paddle: brief(
    'Paddle says {{event.event_type}} at {{event.occurred_at}}: {{event.data.id}}, status {{event.data.status}}',
    '{{event.data.details.totals.grand_total}} {{event.data.currency_code}}, in its smallest unit',
  ),
  'lemon-squeezy': brief(
    'Lemon Squeezy says {{event.meta.event_name}}: {{event.data.attributes.product_name}} {{event.data.attributes.total_formatted}}, status {{event.data.attributes.status}}',
  ),
  docusign: brief(
    'DocuSign says {{event.event}}: {{event.data.envelopeSummary.emailSubject}}, status {{event.data.envelopeSummary.status}}',
    'Envelope {{event.data.envelopeId}}',
  ),
  todoist: brief(
    'Todoist says {{event.event_name}}: {{event.event_data.content}}',
    '{{event.event_data.description}}',
    'Due: {{event.event_data.due.date}}',
  ),
  telegram: {
    prompt: `{{event.message.from.first_name}} wrote this in Telegram:

{{event.message.text}}

Answer in a few sentences.
`,
  },
  zendesk: brief(
    'Zendesk says {{event.type}}: {{event.detail.subject}}',
    'Status {{event.detail.status}}, priority {{event.detail.priority}}',
    '',
    '{{event.detail.description}}',
  ),
  xero: brief('Xero says:', '', '{{event.events}}'),
  square: brief(
    'Square says {{event.type}} at {{event.created_at}}: {{event.data.type}} {{event.data.id}}',
    '{{event.data.object}}',
  ),
  paystack: brief(
    'Paystack says {{event.event}}: {{event.data.reference}}, {{event.data.amount}} {{event.data.currency}} in its smallest unit, status {{event.data.status}}',
  ),
  razorpay: brief(
    'Razorpay says {{event.event}}: {{event.payload.payment.entity.id}}, {{event.payload.payment.entity.amount}} {{event.payload.payment.entity.currency}} in its smallest unit, status {{event.payload.payment.entity.status}}',
    '{{event.payload.payment.entity.error_description}}',
  ),
  intercom: brief(
    'Intercom says {{event.topic}}: {{event.data.item.id}} {{event.data.item.title}}',
    '{{event.data.item.source.body}}',
  ),
  twitch: brief('Twitch says {{event.subscription.type}}:', '', '{{event.event}}'),
  'google-calendar': brief(
    'Google says {{event.x-goog-resource-state}} of {{event.x-goog-resource-uri}} {{event.x-goog-changed}}',
  ),
  'google-pubsub': brief(
    'A message of Pub/Sub, with the attributes {{event.message.attributes | json}}:',
    '',
    '{{event.message.data | base64_decode}}',
  ),
  'aws-sns': brief('Amazon SNS says: {{event.Subject}}', '', '{{event.Message}}'),
  discord: brief(
    'Someone used {{event.data.name}} in Discord: {{event.data.options}}',
    '{{event.event.type}} {{event.event.data}}',
  ),
  sendgrid: {
    prompt: `SendGrid says of these messages:
{% for item in event limit: 30 %}
- {{item.event}} {{item.email}} {{item.reason}}
{%- endfor %}
{%- if event.size > 30 %}
{{event.size | minus: 30}} more are left out here.
{%- endif %}

${ask}
`,
  },
  netlify: brief(
    'Netlify says that the deploy of {{event.name}} is {{event.state}}: {{event.branch}}, {{event.context}}',
    '{{event.title}}',
    '{{event.error_message}}',
    '{{event.deploy_ssl_url}}',
  ),
  monday: brief(
    'monday.com says {{event.event.type}} on board {{event.event.boardId}}: {{event.event.pulseName}}',
    '{{event.event.columnTitle}} {{event.event.value}} {{event.event.textBody}}',
  ),
  mailgun: brief(
    'Mailgun says {{event["event-data"].event}} of a message to {{event["event-data"].recipient}}{{event.recipient}}: {{event.subject}}',
    '{{event["event-data"]["delivery-status"]}}',
    '{{event.stripped-text}}',
  ),
  twilio: brief(
    'Twilio says {{event.SmsStatus}}{{event.CallStatus}}, from {{event.From}} to {{event.To}}:',
    '',
    '{{event.Body}}',
  ),
  'microsoft-graph': brief('Microsoft Graph says:', '', '{{event.value}}'),
} as const
